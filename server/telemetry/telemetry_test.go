package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// Tests with OpenTelemetry's SDK are in the module sdktest.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newObserver(tb testing.TB) *Observer {
	o, err := New(Options{})
	require.NoError(tb, err)
	return o
}

// badError panics.
type badError struct{}

func (badError) Error() string { panic("Error") }

// wrapped is an error whose nil pointer panics in Unwrap.
type wrapped struct{ err error }

func (*wrapped) Error() string   { return "wrapped" }
func (w *wrapped) Unwrap() error { return w.err }

func TestOutcomeOf(t *testing.T) {
	canceledCtx, cancel := context.WithCancel(t.Context())
	cancel()
	late, timeOut := context.WithCancelCause(t.Context())
	timeOut(&reqctx.TimeoutError{Name: "p"})
	for _, tt := range []struct {
		ctx  context.Context
		err  error
		want outcome
	}{
		{t.Context(), nil, resolved},
		{canceledCtx, nil, resolved},
		{late, nil, timedOut},
		{late, context.Canceled, timedOut},
		{canceledCtx, fmt.Errorf("load: %w", context.Canceled), canceled},
		{canceledCtx, context.DeadlineExceeded, canceled},
		{t.Context(), context.Canceled, failed},
		{t.Context(), reqctx.ErrNotReturned, panicked},
		{t.Context(), session.ErrNotBound, rejected},
		{t.Context(), &ratelimit.DeniedError{}, rejected},
		{t.Context(), fmt.Errorf("user: %w", server.Errorf(404, "gone")), rejected},
		{t.Context(), &server.Problem{Status: 200}, failed},
		{t.Context(), ratelimit.ErrStore, failed},
		{t.Context(), errors.New("broken"), failed},
		{t.Context(), (*wrapped)(nil), failed},
	} {
		require.Equal(t, tt.want, outcomeOf(tt.ctx, "p", tt.err), "%v", tt.want)
	}
	require.Equal(t, canceled, outcomeOf(late, "another", context.Canceled))
}

func TestFailureOf(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx    context.Context
		status int
		err    error
		want   string
	}{
		{t.Context(), 500, nil, ""},
		{t.Context(), 429, &ratelimit.DeniedError{}, ""},
		{t.Context(), 500, lazy.NewPanicError("p", 1), "panic"},
		{gone, 500, lazy.NewPanicError("p", 1), "panic"},
		{t.Context(), 500, lazy.ErrGoexit, "panic"},
		{gone, 503, context.Canceled, "canceled"},
		{t.Context(), 200, http.ErrAbortHandler, "aborted"},
		{t.Context(), 409, &session.Error{Action: "save", Err: session.ErrConflict}, "session_conflict"},
		{t.Context(), 409, &session.Error{Action: "save", Err: session.ErrGone}, "session_conflict"},
		{t.Context(), 503, fmt.Errorf("x: %w", &session.Error{Action: "load", Err: errors.New("down")}), "session"},
		{t.Context(), 503, fmt.Errorf("x: %w", ratelimit.ErrStore), "ratelimit"},
		{t.Context(), 303, &ratelimit.DeniedError{}, ""}, // a redirect to a page that explains it
		{t.Context(), 0, errors.New("of a hijacked connection"), "error"},
		{t.Context(), 500, errors.New("broken"), "error"},
		{t.Context(), 500, (*wrapped)(nil), "error"},
	} {
		require.Equal(t, tt.want, failureOf(tt.ctx, &server.RequestInfo{Status: tt.status, Err: tt.err}), "%v", tt.want)
	}
	require.Equal(t, "cut_off", failureOf(t.Context(), &server.RequestInfo{Status: 200, CutOff: true, Err: &ratelimit.DeniedError{}}))
}

func TestTexts(t *testing.T) {
	require.Contains(t, errorText(badError{}), "PANIC")
	long := errorText(errors.New(strings.Repeat("ä", maxErrorText)))
	require.True(t, utf8.ValidString(long))
	require.Less(t, len(long), maxErrorText+10)
	require.Equal(t, "a�b", clip("a\xff\xfeb", 10))
	hostile := newProperty("\xff\x00\"\n" + strings.Repeat("n", 1000))
	require.True(t, utf8.ValidString(hostile.spanName))
	require.Less(t, len(hostile.spanName), 2*maxName)
	require.Equal(t, "/users/{id}", route("GET example.com/users/{id}"))
	require.Equal(t, "/", route("/"))
	require.Empty(t, route(""))
}

func TestCacheIsBounded(t *testing.T) {
	made := 0
	c := newCache(func(k int) *int { made++; return &k }, func(k int) int { return -max(k%2, -k) })
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for k := 1; k <= 5000; k++ {
				if v := *c.get(k); v > 0 {
					require.Equal(t, k, v)
				}
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, made, maxEntries+2)
	require.Len(t, c.entries, made)
	require.Equal(t, -1, *c.get(6001))
	require.Same(t, c.get(6002), c.get(7002))
}

type nullWriter struct{ h http.Header }

func (w nullWriter) Header() http.Header         { return w.h }
func (w nullWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w nullWriter) WriteHeader(int)             {}

// bare is an observer that does nothing. Its cost is the server's cost of calling an observer.
type bare struct{}

func (bare) ResolveStart(ctx context.Context, _ string) context.Context { return ctx }
func (bare) ResolveEnd(context.Context, string, time.Duration, error)   {}
func (bare) RequestEnd(context.Context, server.RequestInfo)             {}

// Without an SDK, telemetry allocates nothing.
func TestAllocationsWithoutSDK(t *testing.T) {
	search := ratelimit.NewPolicy("search", ratelimit.ByIP(), ratelimit.PerMinute(1<<40))
	inner, outer := reqctx.NewKey[int]("inner"), reqctx.NewKey[int]("outer")
	allocs := func(o server.Observer) float64 {
		srv, err := server.New(server.Options{Observers: []server.Observer{o}, RateLimits: []*ratelimit.Policy{search}})
		require.NoError(t, err)
		reqctx.Provide(srv.Registry(), inner, reqctx.Prop[int]{Resolve: func(context.Context) (int, error) { return 1, nil }})
		reqctx.Provide(srv.Registry(), outer, reqctx.Prop[int]{Resolve: inner.Get})
		srv.HandleFunc("GET /", func(http.ResponseWriter, *server.Request) error { return nil }, server.Require(search), server.Require(outer))
		w, r := nullWriter{http.Header{}}, httptest.NewRequest("GET", "/", nil)
		return testing.AllocsPerRun(1000, func() { clear(w.h); srv.ServeHTTP(w, r) })
	}
	require.InDelta(t, allocs(bare{}), allocs(newObserver(t)), 0.5)
}

// A resolution with its start and end.
func BenchmarkResolutionWithoutSDK(b *testing.B) {
	reg := reqctx.NewRegistry(reqctx.Options{Observer: newObserver(b)})
	k := reqctx.NewKey[int]("measured")
	reqctx.Provide(reg, k, reqctx.Prop[int]{Resolve: func(context.Context) (int, error) { return 1, nil }})
	o, ctx := newObserver(b), context.Context(reqctx.New(b.Context(), reg))
	b.ReportAllocs()
	for b.Loop() {
		o.ResolveEnd(o.ResolveStart(ctx, "measured"), "measured", time.Millisecond, nil)
	}
}
