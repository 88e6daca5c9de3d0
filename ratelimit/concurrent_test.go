package ratelimit_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/storespy"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
)

// concurrentPolicy returns a policy that allows two requests at a time, and some more rules.
func concurrentPolicy(more ...ratelimit.Rule) *ratelimit.Policy {
	return ratelimit.NewPolicy("p", ratelimit.ByIP(), append(more, ratelimit.Concurrent(2))...)
}

// used returns the number of units that each rule has counted for the address of a request.
func (q requests) used() (counts []int64) {
	q.Helper()
	for _, r := range q.policies[0].Rules {
		n, err := newLimiter(q, q.store.Store, r).Count(q.Context(), "p:192.0.2.1", 0)
		require.NoError(q, err)
		counts = append(counts, n)
	}
	return counts
}

func TestConcurrentCountsRequestsInProgress(t *testing.T) {
	q := provide(t, concurrentPolicy())
	p := q.policies[0]
	q.serve(func(first *reqctx.Host) {
		require.NoError(t, p.Require(first))
		h := q.serve(func(second *reqctx.Host) { require.NoError(t, p.Require(second)) })
		require.Equal(t, `"p";q=2;qu="concurrent-requests"`, h.Get("RateLimit-Policy"))
		require.Equal(t, `"p";r=0`, h.Get("RateLimit"))
		q.serve(func(second *reqctx.Host) {
			require.NoError(t, p.Require(second))
			h := q.serve(func(third *reqctx.Host) {
				denied, ok := errors.AsType[*ratelimit.DeniedError](p.Require(third))
				require.True(t, ok)
				require.Equal(t, []string{"p"}, denied.Policies)
				require.Equal(t, time.Second, denied.RetryAfter)
			})
			require.Equal(t, "1", h.Get("Retry-After"))
			require.Equal(t, []int64{2}, q.used(), "the end of a denied request releases nothing")
		})
		require.Equal(t, []int64{1}, q.used())
	})
	require.Equal(t, []int64{0}, q.used())
}

// TestRefundAndReleaseAreSeparate checks that Refund gives back the units of other rules only, and that the end of the
// request gives back the units of a Concurrent only.
func TestRefundAndReleaseAreSeparate(t *testing.T) {
	q := provide(t, concurrentPolicy(ratelimit.PerMinute(5), ratelimit.SlidingLog(9, time.Hour)))
	p := q.policies[0]
	q.serve(func(c *reqctx.Host) {
		require.NoError(t, p.Require(c))
		require.Equal(t, []int64{1, 1, 1}, q.used())
	})
	require.Equal(t, []int64{1, 1, 0}, q.used())
	h := q.serve(func(c *reqctx.Host) {
		require.NoError(t, p.Require(c))
		for range 2 {
			require.True(t, must(p.Refund(c)))
			require.Equal(t, []int64{1, 1, 1}, q.used())
		}
	})
	require.Equal(t, `"p.60s";r=4;t=63, "p.1h";r=8;t=3600, "p.concurrent";r=1`, h.Get("RateLimit"))
	require.Equal(t, []int64{1, 1, 0}, q.used())
}

// TestSettleDoesNotRelease checks that the units of a Concurrent stay in use when Settle refunds the charge, until the
// request is finished.
func TestSettleDoesNotRelease(t *testing.T) {
	p := concurrentPolicy(ratelimit.PerMinute(5))
	p.Settle = func(int) bool { return false }
	q := provide(t, p)
	c, h := reqctx.New(t.Context(), q.reg), http.Header{}
	c.SetRequest(httptest.NewRequestWithContext(c, "GET", "/", nil))
	require.NoError(t, p.Require(c))
	require.NoError(t, c.Commit(http.StatusOK, h))
	require.Equal(t, []int64{0, 1}, q.used())
	require.Equal(t, `"p.60s";r=5;t=0, "p.concurrent";r=1`, h.Get("RateLimit"))
	require.NoError(t, c.Finish())
	require.Equal(t, []int64{0, 0}, q.used())
}

func TestRefundOfAConcurrentAlone(t *testing.T) {
	q := provide(t, concurrentPolicy())
	q.serve(func(c *reqctx.Host) {
		require.NoError(t, q.policies[0].Require(c))
		require.False(t, must(q.policies[0].Refund(c)))
		require.Equal(t, []int64{1}, q.used())
	})
}

// TestReleaseAfterTheLife checks that a request that is longer than the life does not release the units of another one.
func TestReleaseAfterTheLife(t *testing.T) {
	q := provide(t, concurrentPolicy())
	late := reqctx.New(t.Context(), q.reg)
	late.SetRequest(httptest.NewRequest("GET", "/", nil))
	require.NoError(t, q.policies[0].Require(late))
	q.hand.now = q.hand.now.Add(time.Minute)
	q.serve(func(c *reqctx.Host) {
		require.NoError(t, q.policies[0].Require(c))
		require.NoError(t, late.Finish())
		require.Equal(t, []int64{1}, q.used())
	})
}

// TestReleaseWhenTheClientLeavesDuringTheTake checks that units are released that the store charges after the client has
// left.
func TestReleaseWhenTheClientLeavesDuringTheTake(t *testing.T) {
	q := provide(t, concurrentPolicy())
	ctx, leave := context.WithCancel(t.Context())
	inner := q.store.Store
	q.store.Store = storespy.Func(func(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
		leave()
		results, err := inner.Do(context.WithoutCancel(ctx), ops)
		return results, errors.Join(err, ctx.Err()) // without the results, as Redis does
	})
	c := reqctx.New(ctx, q.reg)
	c.SetRequest(httptest.NewRequest("GET", "/", nil))
	require.NoError(t, q.policies[0].Require(c))
	require.NoError(t, c.Finish())
	q.store.Store = inner
	require.Equal(t, []int64{0}, q.used())
}

// TestReleaseThatFails checks that a failed release is logged, and that the units come back when their life ends.
func TestReleaseThatFails(t *testing.T) {
	for name, fail := range map[string]storespy.Func{
		"error": func(context.Context, []ratelimit.Op) ([]ratelimit.Result, error) { return nil, errors.New("broken") },
		"panic": func(context.Context, []ratelimit.Op) ([]ratelimit.Result, error) { panic("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			h, p := newHand(), concurrentPolicy()
			s := &spy{Store: newStore(t, memstore.Options{Clock: h.clock})}
			reg := reqctx.NewRegistry(reqctx.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			ratelimit.Provide(reg, s, p)
			q := requests{t, reg, []*ratelimit.Policy{p}, &spy{Store: s.Store}, h}
			c := reqctx.New(t.Context(), reg)
			c.SetRequest(httptest.NewRequest("GET", "/", nil))
			require.NoError(t, p.Require(c))
			s.Store = fail
			require.ErrorContains(t, c.Finish(), "broken")
			require.Contains(t, log.String(), "broken")
			require.Equal(t, []int64{1}, q.used())
			h.now = h.now.Add(time.Minute)
			require.Equal(t, []int64{0}, q.used())
		})
	}
}

// TestConcurrentOfOneRequest checks that RulesFor can choose the rule, and that requests with other rules call the store
// only once.
func TestConcurrentOfOneRequest(t *testing.T) {
	p := concurrentPolicy()
	rules := []ratelimit.Rule{ratelimit.PerMinute(5)}
	p.RulesFor = func(context.Context, *http.Request) ([]ratelimit.Rule, error) { return rules, nil }
	q := provide(t, p)
	q.take("p")
	require.Equal(t, 1, q.store.calls)
	rules = []ratelimit.Rule{ratelimit.Concurrent(3)}
	q.serve(func(c *reqctx.Host) {
		require.NoError(t, p.Require(c))
		require.Equal(t, []int64{1}, q.used())
	})
	require.Equal(t, 3, q.store.calls, "take, take, release")
	require.Equal(t, []int64{0}, q.used())
}

func TestMiddlewareReleases(t *testing.T) {
	p := ratelimit.NewPolicy("p", ratelimit.ByIP(), ratelimit.Concurrent(1))
	wrap := must(ratelimit.Middleware(newStore(t, memstore.Options{}), p, ratelimit.MiddlewareOptions{}))
	var h http.Handler
	depth := 0
	h = wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { depth-- }()
		if depth++; depth == 1 {
			inner := httptest.NewRecorder()
			h.ServeHTTP(inner, httptest.NewRequest("GET", "/", nil))
			w.WriteHeader(inner.Code)
			panic(http.ErrAbortHandler)
		}
	}))
	for range 3 {
		w := httptest.NewRecorder()
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)) })
		require.Equal(t, http.StatusTooManyRequests, w.Code, "of the request within the request")
	}
}

func TestConcurrentRefuses(t *testing.T) {
	r := ratelimit.Concurrent(8)
	for _, tt := range []struct {
		rule ratelimit.Rule
		want string
	}{
		{ratelimit.Concurrent(0), "ratelimit: Concurrent.Limit is 0, want 1 to 2^53"},
		{ratelimit.Concurrent(-1).WithLife(time.Second), "ratelimit: Concurrent.Limit is -1, want 1 to 2^53"},
		{r.WithLife(0), "ratelimit: Rule.Life is 0s, want 1µs to 876000h0m0s"},
		{r.WithLife(-time.Second), "ratelimit: Rule.Life is -1s, want 1µs to 876000h0m0s"},
		{r.WithLife(time.Nanosecond), "ratelimit: Rule.Life is 1ns, want whole microseconds"},
		{ratelimit.PerMinute(1).WithLife(time.Second), "ratelimit: Rule.Life is for a Concurrent only"},
		{r.WithStream(), "ratelimit: Rule.Stream is for a SlidingLog only"},
		{r.WithBurst(2), "ratelimit: Rule.Burst is for a GCRA only"},
		{r.WithoutLimit(), "ratelimit: Rule.Limit is missing, and only buckets and logs count without one"},
	} {
		require.EqualError(t, tt.rule.Err(), tt.want)
	}
	r = r.WithLife(2 * time.Second).WithName("export").WithName("")
	require.NoError(t, r.Err())
	require.Equal(t, "concurrent", r.Name())
	require.Equal(t, "log(8 at a time, for 2s at most)", r.String())
	require.Equal(t, ratelimit.Concurrent(8), r.WithLife(time.Minute))
}
