package server_test

import (
	"bufio"
	"cmp"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/ratelimit"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/memstore"
)

// memoryLoad is how many clients there are, and how many the stores remember: few for seconds, the defaults
// for the minutes of LAZYREQ_TORTURE.
func memoryLoad(t *testing.T) (clients, remembered int, atLeast time.Duration) {
	if testenv.IsLong() {
		return 10_000_000, 100_000, testenv.Duration(t, 0)
	}
	if testenv.Racing {
		return 8_000, 1_000, 0
	}
	return 80_000, 5_000, 0
}

// Each request is from another client, with its own key and its own session. What the server remembers of
// them is bounded: the memory is the same after all of them as when the stores became full.
func TestMemoryIsFlat(t *testing.T) {
	clients, remembered, atLeast := memoryLoad(t)
	releases(t)
	sessions, err := memstore.New(memstore.Options{MaxKeys: remembered})
	require.NoError(t, err)
	counters, err := ratestore.New(ratestore.Options{MaxSubjects: remembered})
	require.NoError(t, err)
	srv, logs := newServer(t, server.Options{
		Session: session.Options{Cookie: session.Cookie{Insecure: true}}, SessionStore: sessions,
		RateLimits: []*ratelimit.Policy{{
			Name: "key", Key: ratelimit.ByHeader("X-Key"), Rules: []ratelimit.Rule{ratelimit.PerHour(5)},
		}},
		RateLimitStore: counters,
	})
	srv.HandleFunc("POST /", func(w http.ResponseWriter, req *server.Request) error {
		if err := req.RateLimit().Require(); err != nil {
			return err
		}
		return req.Session().Set("name", req.Header.Get("X-Key"))
	})
	url, _ := listenItself(t, srv)
	addr := strings.TrimPrefix(url, "http://")
	var next atomic.Int64
	send := func(n int) { sendDistinct(t, addr, n, &next) }

	send(4 * remembered) // shards fill unevenly
	full, began := liveHeap(), time.Now()
	left := clients - 4*remembered
	rounds := 4
	if atLeast > 0 {
		rounds = 100
	}
	for i := 1; i <= rounds || time.Since(began) < atLeast; i++ {
		send(left / rounds)
		now := liveHeap()
		require.Less(t, now, full+full/10+1<<20, "round %d", i)
		if i%max(rounds/4, 1) == 0 {
			t.Logf("%9d clients, %6.1f MB (%.1f MB when full), %v", next.Load(), float64(now)/1e6, float64(full)/1e6, time.Since(began).Round(time.Second))
		}
	}
	require.LessOrEqual(t, sessions.Len(), remembered)
	require.Empty(t, logs.at("ERROR"))
}

// sendDistinct sends n requests, each with a key that no other has, on a few connections.
func sendDistinct(t *testing.T, addr string, n int, next *atomic.Int64) {
	t.Helper()
	const conns, batch = 4, 50
	concurrently(conns, func(int) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		out, in := bufio.NewWriter(conn), bufio.NewReader(conn)
		for sent := 0; sent < n/conns; sent += batch {
			for range batch {
				fmt.Fprintf(out, "POST / HTTP/1.1\r\nHost: x\r\nX-Key: %d\r\n\r\n", next.Add(1))
			}
			err := out.Flush()
			for range batch {
				err = cmp.Or(err, readOK(in))
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
}

// readOK reads a response without a body.
func readOK(in *bufio.Reader) error {
	line, err := in.ReadString('\n')
	if err == nil && line != "HTTP/1.1 200 OK\r\n" {
		return fmt.Errorf("%s", line)
	}
	for err == nil && line != "\r\n" {
		line, err = in.ReadString('\n')
	}
	return err
}
