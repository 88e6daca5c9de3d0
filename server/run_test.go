package server_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
)

// runUntil runs srv on pipes until end is called.
func runUntil(t *testing.T, srv *server.Server) (c *http.Client, end func(), ran <-chan error) {
	p := newPipes()
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- srv.RunUntil(ctx, func() error { return srv.Serve(p) }) }()
	return &http.Client{Transport: &http.Transport{DialContext: p.dial}}, end, done
}

func TestRunUntilAnswersRequestsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := newServer(t, server.Options{})
		release := make(chan struct{})
		srv.HandleFunc("GET /", func(_ http.ResponseWriter, _ *server.Request) error { <-release; return nil })
		c, end, ran := runUntil(t, srv)
		defer c.CloseIdleConnections()
		status := make(chan int, 1)
		go func() {
			res, err := request(t, c, "GET", "http://pipe/")
			if err != nil {
				t.Error(err)
			}
			status <- res.StatusCode
		}()
		synctest.Wait()
		end()
		pending(t, ran)
		close(release)
		require.Equal(t, 200, <-status)
		require.NoError(t, <-ran)
	})
}

func TestRunUntilCancelsRequestsAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := newServer(t, server.Options{ShutdownTimeout: 3 * time.Second})
		srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
			<-req.Context().Done()
			return context.Cause(req.Context())
		})
		c, end, ran := runUntil(t, srv)
		defer c.CloseIdleConnections()
		go func() { _, _ = request(t, c, "GET", "http://pipe/") }()
		synctest.Wait()
		began := time.Now()
		end()
		require.EqualError(t, <-ran, "server: requests were cancelled 3s after the shutdown began")
		require.WithinDuration(t, began.Add(3*time.Second), time.Now(), 0)
	})
}

func TestRunUntilReturnsTheErrorOfServing(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	broken := errors.New("broken")
	require.ErrorIs(t, srv.RunUntil(t.Context(), func() error { return broken }), broken)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, srv.RunUntil(ended, func() error { return srv.ListenAndServe("127.0.0.1:0") }))
}
