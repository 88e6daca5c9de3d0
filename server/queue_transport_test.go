package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/queue"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/server"
)

const callsPerProcess = 100

// callTogether sends requests through a queue on a Redis, and does not repeat them. It begins when in has a line, and
// prints how often it got each status. arg is the address of the Redis and the URL.
func callTogether(t *testing.T, arg string, in io.Reader, out io.Writer) {
	addr, url, _ := strings.Cut(arg, " ")
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
	defer client.Close()
	store, err := ratestore.New(client, ratestore.Options{})
	require.NoError(t, err)
	calls, err := queue.New(store, ratelimit.GCRA(100, time.Second).WithBurst(1), queue.Options{})
	require.NoError(t, err)
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	c := &http.Client{Transport: &queue.Transport{Queue: calls, Base: base, MaxRepeats: -1}}
	fmt.Fprintln(out, "ready")
	_, err = bufio.NewReader(in).ReadString('\n')
	require.NoError(t, err)
	var mu sync.Mutex
	statuses := map[int]int{}
	var all sync.WaitGroup
	for range callsPerProcess {
		all.Go(func() {
			res, err := request(t, c, "GET", url)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				statuses[res.StatusCode]++
			}
		})
	}
	all.Wait()
	fmt.Fprintln(out, statuses)
}

// TestTransportsShareAQuota checks that a server denies no request of two processes whose queues share a Redis. Each of
// the processes alone would use the whole quota, and both together would exceed the server's burst.
func TestTransportsShareAQuota(t *testing.T) {
	testhost.ServeProcess(t, func(arg string, in io.Reader, out io.Writer) { callTogether(t, arg, in, out) })
	api := ratelimit.NewPolicy("api", ratelimit.ByIP(), ratelimit.GCRA(100, time.Second).WithBurst(50))
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{api}})
	srv.HandleFunc("GET /", func(http.ResponseWriter, *server.Request) error { return nil }, server.Require(api))
	url, _ := listenItself(t, srv)
	addr := testhost.StartRedis(t).Addr
	var processes [2]*testhost.Process
	var lines [2]*bufio.Reader
	for i := range processes {
		processes[i] = testhost.StartProcess(t, addr+" "+url)
		lines[i] = bufio.NewReader(processes[i].Out)
		line, err := lines[i].ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
	}
	for _, p := range processes {
		_, err := fmt.Fprintln(p.In, "begin")
		require.NoError(t, err)
	}
	for i, p := range processes {
		line, err := lines[i].ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("map[200:%d]\n", callsPerProcess), line)
		p.End(t)
	}
}
