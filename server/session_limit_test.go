package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	sessionstore "github.com/lazyreq/lazyreq/session/redisstore"
)

// serveLogins runs a server whose sessions are in the Redis at addr, with at most two for each user. It prints the
// server's address, and ends when in ends.
func serveLogins(addr string, in io.Reader, out io.Writer) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	store, err := sessionstore.New(client, sessionstore.Options{Timeout: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	srv, err := server.New(server.Options{
		SessionStore: store,
		Session:      session.Options{MaxPerUser: 2, Cookie: session.Cookie{Insecure: true}},
	})
	if err != nil {
		panic(err)
	}
	srv.HandleFunc("POST /login/{user}", func(_ http.ResponseWriter, req *server.Request) error {
		return req.Session().Bind(req.PathValue("user"))
	})
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		return nil
	}, server.Require(session.LoggedIn))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(out, "http://%s\n", l.Addr())
	go func() { _ = srv.Serve(l) }()
	_, _ = io.Copy(io.Discard, in)
}

// Two processes share a Redis. A user logs in many times at once. Of the logins that have succeeded, at most two work at
// any moment, and two in the end.
func TestMaxPerUserOfTwoProcesses(t *testing.T) {
	testhost.ServeProcess(t, serveLogins)
	redisAddr := testhost.StartRedis(t).Addr
	var urls []string
	for range 2 {
		p := testhost.StartProcess(t, redisAddr)
		line, err := bufio.NewReader(p.Out).ReadString('\n')
		require.NoError(t, err)
		urls = append(urls, strings.TrimSpace(line))
	}
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20}}
	t.Cleanup(c.CloseIdleConnections)
	var mu sync.Mutex
	var cookies []*http.Cookie  // of the logins that have succeeded
	working := func() (n int) { // of the cookies that it begins with
		mu.Lock()
		seen := slices.Clone(cookies)
		mu.Unlock()
		for i, cookie := range seen {
			r, _ := http.NewRequestWithContext(t.Context(), "GET", urls[i%2], nil)
			r.AddCookie(cookie)
			res, err := do(c, r)
			switch {
			case err != nil:
				t.Error(err)
			case res.StatusCode == http.StatusOK:
				n++
			case res.StatusCode != http.StatusUnauthorized:
				t.Errorf("a request has the status %d", res.StatusCode)
			}
		}
		return n
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			res, err := request(t, c, "POST", urls[i%2]+"/login/ada")
			switch {
			case err != nil:
				t.Error(err)
			case res.StatusCode == http.StatusOK:
				mu.Lock()
				cookies = append(cookies, res.Cookies()...)
				mu.Unlock()
				if n := working(); n > 2 {
					t.Errorf("%d sessions worked at the same time", n)
				}
			case res.StatusCode != http.StatusConflict:
				t.Errorf("a login has the status %d", res.StatusCode)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 2, working())
	res, err := request(t, c, "POST", urls[0]+"/login/ada")
	require.NoError(t, err)
	cookies = append(cookies, res.Cookies()...)
	require.Equal(t, 2, working())
}
