package ratelimit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
)

// limiting holds a middleware and its store, which counts its calls.
type limiting struct {
	*testing.T
	store *spy
	log   bytes.Buffer
	wrap  func(http.Handler) http.Handler
}

func newLimiting(t *testing.T, p *ratelimit.Policy, o ratelimit.MiddlewareOptions) *limiting {
	m := &limiting{T: t, store: &spy{Store: newStore(t, memstore.Options{Clock: newHand().clock})}}
	o.Logger = slog.New(slog.NewTextHandler(&m.log, nil))
	var err error
	m.wrap, err = ratelimit.Middleware(m.store, p, o)
	require.NoError(t, err)
	return m
}

func ask(h http.Handler) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", "/x", nil))
	return rec
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })

func TestMiddleware(t *testing.T) {
	m := newLimiting(t, ipPolicy("ip", 2), ratelimit.MiddlewareOptions{})
	h := m.wrap(hello)
	for i, left := range []string{"1", "0"} {
		rec := ask(h)
		require.Equal(t, 200, rec.Code)
		require.Equal(t, "hello", rec.Body.String())
		require.Equal(t, `"ip";q=2;w=60`, rec.Header().Get("RateLimit-Policy"))
		require.Equal(t, `"ip";r=`+left+`;t=65`, rec.Header().Get("RateLimit"))
		require.Empty(t, rec.Header().Get("Cache-Control"))
		require.Equal(t, i+1, m.store.calls)
	}
	rec := ask(h)
	require.Equal(t, 429, rec.Code)
	require.Equal(t, "65", rec.Header().Get("Retry-After"))
	require.Equal(t, "no-store", rec.Header().Get("Cache-Control"))
	require.Equal(t, "application/problem+json", rec.Header().Get("Content-Type"))
	require.JSONEq(t, `{"status":429,"title":"Quota exceeded","detail":"Too many requests. Try again in 65 seconds.",
		"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","violated-policies":["ip"]}`, rec.Body.String())
	require.Equal(t, 3, m.store.calls)
	require.Empty(t, m.log.String(), "a denial is nobody's failure")
}

// TestHandlerBehindAMiddleware checks that a handler can use the policy and the Limit without a server.
func TestHandlerBehindAMiddleware(t *testing.T) {
	p := ipPolicy("ip", 5)
	m := newLimiting(t, p, ratelimit.MiddlewareOptions{})
	var kept ratelimit.Limit
	var ended context.Context
	rec := ask(m.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ended = r.Context()
		l := must(ratelimit.From(ended))
		kept = l
		var wg sync.WaitGroup
		for _, take := range []func() (ratelimit.Result, error){l.Take, func() (ratelimit.Result, error) { return p.Take(ended) }} {
			for range 5 {
				wg.Go(func() {
					res, err := take()
					if err != nil || res.Remaining != 4 {
						t.Errorf("%+v %v", res, err)
					}
				})
			}
		}
		wg.Wait()
		require.Equal(t, 1, m.store.calls)
		require.EqualValues(t, 3, must(p.Add(ended, 2)).Count)
		for range 3 {
			require.True(t, must(p.Refund(ended)))
		}
		require.EqualValues(t, 3, must(p.Peek(ended)).Remaining)
		ctx, cancel := context.WithCancel(ended)
		cancel()
		_, err := p.Peek(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})))
	require.Equal(t, 200, rec.Code)
	require.Equal(t, `"ip";r=4;t=65`, rec.Header().Get("RateLimit"))
	for _, use := range usesOf(ended, p) {
		require.ErrorIs(t, use(), reqctx.ErrFinished)
	}
	require.ErrorIs(t, kept.Require(), reqctx.ErrFinished)
}

func TestMiddlewareWhenTheStoreFails(t *testing.T) {
	down := errors.New("connection refused")
	for open, want := range map[bool]int{false: 503, true: 200} {
		p := ipPolicy("ip", 2)
		m := newLimiting(t, p, ratelimit.MiddlewareOptions{FailOpen: open})
		m.store.err = down
		rec := ask(m.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := p.Take(r.Context())
			require.ErrorIs(t, err, down)
			ok, err := p.Refund(r.Context())
			require.ErrorIs(t, err, ratelimit.ErrStore)
			require.False(t, ok)
		})))
		require.Equal(t, want, rec.Code)
		require.Equal(t, 1, m.store.calls, "a take whose reply was lost may have charged: no second one")
		require.NotContains(t, rec.Body.String(), "connection")
		require.Contains(t, m.log.String(), "connection refused")
		require.Contains(t, m.log.String(), "level=ERROR")
		require.Contains(t, m.log.String(), "path=/x")
		require.NotContains(t, rec.Header(), "Ratelimit")
		if !open {
			require.JSONEq(t, `{"status":503,"title":"Rate limit unavailable","detail":"The rate limit could not be checked. Try again later."}`, rec.Body.String())
		}
	}
}

// TestMiddlewareOtherErrors checks that FailOpen only lets requests through if the store has failed.
func TestMiddlewareOtherErrors(t *testing.T) {
	for _, tt := range []struct {
		change func(*ratelimit.Policy)
		status int
		logged string
	}{
		{func(p *ratelimit.Policy) { p.Key = ratelimit.ByHeader("X-Api-Key") }, 400, ""},
		{func(p *ratelimit.Policy) {
			p.Cost = func(context.Context, *http.Request) (int64, error) { return 9, nil }
		}, 400, ""},
		{func(p *ratelimit.Policy) { p.Key = fixedKey("", errors.New("secret broke")) }, 500, "secret broke"},
		{func(p *ratelimit.Policy) { p.Key = fixedKey("", context.DeadlineExceeded) }, 503, "deadline"},
	} {
		p := ipPolicy("ip", 2)
		tt.change(p)
		m := newLimiting(t, p, ratelimit.MiddlewareOptions{FailOpen: true})
		rec := ask(m.wrap(hello))
		require.Equal(t, tt.status, rec.Code)
		require.Equal(t, "application/problem+json", rec.Header().Get("Content-Type"))
		var body map[string]any
		require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &body))
		require.EqualValues(t, tt.status, body["status"])
		require.NotEmpty(t, body["title"])
		require.NotContains(t, rec.Body.String(), "secret")
		require.Contains(t, m.log.String(), tt.logged)
		require.Equal(t, tt.logged == "", m.log.Len() == 0)
	}
}

func TestMiddlewareClientGone(t *testing.T) {
	m := newLimiting(t, ipPolicy("ip", 2), ratelimit.MiddlewareOptions{FailOpen: true})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rec := httptest.NewRecorder()
	m.wrap(hello).ServeHTTP(rec, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
	require.Equal(t, 503, rec.Code)
	require.Empty(t, m.log.String(), "logged for debugging only")
}

func TestMiddlewareAnswer(t *testing.T) {
	var got error
	m := newLimiting(t, ipPolicy("ip", 1), ratelimit.MiddlewareOptions{Answer: func(w http.ResponseWriter, _ *http.Request, err error) {
		got = err
		w.WriteHeader(420)
	}})
	ask(m.wrap(hello))
	rec := ask(m.wrap(hello))
	require.Equal(t, 420, rec.Code)
	var denied *ratelimit.DeniedError
	require.ErrorAs(t, got, &denied)
	require.Equal(t, "65", rec.Header().Get("Retry-After"))
}

// TestMiddlewaresStacked checks that a policy with two middlewares charges once, and that the handler has all policies.
func TestMiddlewaresStacked(t *testing.T) {
	store := &spy{Store: newStore(t, memstore.Options{})}
	wrap := func(p *ratelimit.Policy) func(http.Handler) http.Handler {
		m := must(ratelimit.Middleware(store, p, ratelimit.MiddlewareOptions{}))
		return m
	}
	outer, inner := ipPolicy("outer", 2), ipPolicy("inner", 9)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for p, limit := range map[*ratelimit.Policy]int64{outer: 2, inner: 9} {
			require.Equal(t, limit, must(p.Take(r.Context())).Limit)
		}
		_, err := ratelimit.From(r.Context())
		require.ErrorContains(t, err, "several policies (inner, outer)")
	})
	rec := ask(wrap(outer)(wrap(inner)(wrap(outer)(h))))
	require.Equal(t, 200, rec.Code)
	require.Equal(t, []string{"outer:192.0.2.1", "inner:192.0.2.1"}, store.keys)
	require.Equal(t, `"outer";q=2;w=60, "inner";q=9;w=60`, rec.Header().Get("RateLimit-Policy"))

	// A different policy with the same name makes its own charge.
	stricter := ipPolicy("outer", 1)
	require.Equal(t, 429, ask(wrap(outer)(wrap(stricter)(h))).Code)
}

// TestMiddlewareInsideAFailingKey checks that a middleware does not charge a request whose server has the same policy and
// could not find its key.
func TestMiddlewareInsideAFailingKey(t *testing.T) {
	p := ipPolicy("ip", 9)
	p.Key = fixedKey("", ratelimit.ErrNoKey)
	reg := reqctx.NewRegistry(reqctx.Options{})
	ratelimit.Provide(reg, newStore(t, memstore.Options{}), p)
	inner := newLimiting(t, p, ratelimit.MiddlewareOptions{})
	host := reqctx.New(t.Context(), reg)
	r := httptest.NewRequestWithContext(&host.Context, "GET", "/", nil)
	host.SetRequest(r)
	rec := httptest.NewRecorder()
	inner.wrap(hello).ServeHTTP(rec, r)
	require.Equal(t, 400, rec.Code)
	require.Zero(t, inner.store.calls)
	require.NoError(t, host.Finish())
}

func TestMiddlewareRefuses(t *testing.T) {
	_, err := ratelimit.Middleware(nil, ipPolicy("ip", 1), ratelimit.MiddlewareOptions{})
	require.ErrorContains(t, err, "store is nil")
	_, err = ratelimit.Middleware(newStore(t, memstore.Options{}), &ratelimit.Policy{Name: "ip"}, ratelimit.MiddlewareOptions{})
	require.ErrorContains(t, err, `policy "ip": Rules is empty`)
}
