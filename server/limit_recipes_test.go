package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

// TestFailedLoginsOnly has a handler that gives the charge of a right password back, and wrong ones that
// are sent at once.
func TestFailedLoginsOnly(t *testing.T) {
	failures := policy(t, "failures") // 3 per minute
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{failures}})
	var checked atomic.Int64
	srv.HandleFunc("POST /login", func(_ http.ResponseWriter, req *server.Request) error {
		if err := failures.Require(req); err != nil {
			return err
		}
		checked.Add(1)
		if req.FormValue("password") != "right" {
			return server.Errorf(http.StatusUnauthorized, "wrong")
		}
		_, err := failures.Refund(req)
		return err
	})
	for range 10 {
		res := ask(srv, "POST", "/login?password=right")
		require.Equal(t, 200, res.StatusCode)
		require.Contains(t, res.Header.Get("RateLimit"), "r=3", "the field shows the refund")
	}
	checked.Store(0)
	var attempts sync.WaitGroup
	for range 20 {
		attempts.Go(func() { ask(srv, "POST", "/login?password=wrong") })
	}
	attempts.Wait()
	require.EqualValues(t, 3, checked.Load())
	require.Equal(t, 429, ask(srv, "POST", "/login?password=right").StatusCode)
}

// TestLimitByAFieldOfTheBody has a key that reads the body before the handler does.
func TestLimitByAFieldOfTheBody(t *testing.T) {
	store, p := newCalls(t), policy(t, "email")
	p.Key = func(ctx context.Context, _ *http.Request) (string, error) {
		in, err := params.From(ctx)
		if err != nil {
			return "", err
		}
		email, err := in.JSON().String("email")
		return strings.ToLower(email), err
	}
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{p}, RateLimitStore: store})
	srv.HandleFunc("POST /reset", func(w http.ResponseWriter, req *server.Request) error {
		email, err := req.Params().JSON().String("email")
		_, _ = w.Write([]byte(email))
		return err
	}, server.Require(p))
	send := func(body string) *httptest.ResponseRecorder {
		r, rec := httptest.NewRequest("POST", "/reset", strings.NewReader(body)), httptest.NewRecorder()
		r.Header.Set("Content-Type", "application/json")
		srv.ServeHTTP(rec, r)
		return rec
	}
	for i := range 4 {
		rec := send(`{"email":"Ada@example.com"}`)
		require.Equal(t, map[bool]int{true: 200, false: 429}[i < 3], rec.Code)
		require.Equal(t, i < 3, rec.Body.String() == "Ada@example.com")
	}
	require.Equal(t, 200, send(`{"email":"grace@example.com"}`).Code)
	require.Equal(t, "take email:ada@example.com", store.keys[0])
	require.Equal(t, 400, send(`{}`).Code)
	require.Equal(t, 400, send(`{"email":7}`).Code)
}
