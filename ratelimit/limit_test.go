package ratelimit_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
)

// TestStartTakes checks that Start charges the request once, and that the response has the header fields even if no code
// reads the result.
func TestStartTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := provide(t, ipPolicy("ip", 5))
		for left, want := range []string{`"ip";r=4;t=65`, `"ip";r=3;t=65`} {
			h := q.serve(func(c *reqctx.Host) {
				p := q.policies[0]
				require.NoError(t, p.Start(c))
				synctest.Wait()
				require.Equal(t, left+1, q.store.calls, "it waits for nothing else")
				require.NoError(t, p.Start(c))
				if left == 0 {
					require.EqualValues(t, 4, must(p.Take(c)).Remaining)
				}
			})
			require.Equal(t, want, h.Get("RateLimit"))
			require.Equal(t, left+1, q.store.calls)
		}
	})
}

// TestNoNameReachesAPolicy checks that code cannot resolve the properties of a policy by their names.
func TestNoNameReachesAPolicy(t *testing.T) {
	q := provide(t, ipPolicy("ip", 5))
	q.serve(func(c *reqctx.Host) {
		for _, name := range []string{"ip", "ip.key", "ip.take", "ip.count"} {
			require.ErrorIs(t, reqctx.Resolve(c, "ratelimit."+name), reqctx.ErrNoProperty)
		}
	})
	require.Zero(t, q.store.calls)
}

func TestDenial(t *testing.T) {
	q := provide(t, ipPolicy("ip", 2))
	q.take("ip")
	q.take("ip")
	q.hand.now = q.hand.now.Add(20500 * time.Millisecond)
	res, h := q.take("ip")
	var denied *ratelimit.DeniedError
	require.ErrorAs(t, res.Err(), &denied)
	require.Equal(t, []string{"ip"}, denied.Policies)
	require.EqualValues(t, 2, denied.Limit)
	require.Equal(t, res.RetryAfter, denied.RetryAfter)
	code, members := denied.Problem()
	require.Equal(t, http.StatusTooManyRequests, code)
	require.Equal(t, map[string]any{
		"type":              "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"title":             "Quota exceeded",
		"detail":            "Too many requests. Try again in 45 seconds.",
		"violated-policies": []string{"ip"},
	}, members)
	require.Equal(t, http.Header{
		"Ratelimit-Policy": {`"ip";q=2;w=60`},
		"Ratelimit":        {`"ip";r=0;t=45`},
		"Retry-After":      {"45"},
		"Cache-Control":    {"no-store"},
	}, h)
	q.hand.now = q.hand.now.Add(res.RetryAfter)
	res, _ = q.take("ip")
	require.True(t, res.Allowed)
}

func TestRetrySeconds(t *testing.T) {
	for d, want := range map[time.Duration]int64{0: 1, 1: 1, time.Second: 1, time.Second + 1: 2, 90 * time.Second: 90} {
		require.Equal(t, want, (&ratelimit.DeniedError{RetryAfter: d}).RetrySeconds(), d)
		require.Equal(t, want, ratelimit.Result{RetryAfter: d}.RetrySeconds(), d)
	}
	require.Zero(t, ratelimit.Result{Allowed: true}.RetrySeconds())
	require.EqualValues(t, 1, ratelimit.Result{Allowed: true, RetryAfter: 1}.RetrySeconds())
	_, members := (&ratelimit.DeniedError{RetryAfter: time.Second}).Problem()
	require.Equal(t, "Too many requests. Try again in 1 second.", members["detail"])
	require.NotContains(t, members, "violated-policies")
}

func TestSeveralRules(t *testing.T) {
	p := ipPolicy("ip", 5)
	p.Rules = append(p.Rules, coarse(2, 10*time.Second).WithName("burst"))
	q := provide(t, p)
	res, h := q.take("ip")
	require.EqualValues(t, 1, res.Remaining)
	require.EqualValues(t, 2, res.Limit)
	require.Equal(t, http.Header{
		"Ratelimit-Policy": {`"ip.60s";q=5;w=60, "ip.burst";q=2;w=10`},
		"Ratelimit":        {`"ip.60s";r=4;t=65, "ip.burst";r=1;t=15`},
	}, h)
	q.take("ip")
	res, h = q.take("ip")
	require.False(t, res.Allowed)
	require.Equal(t, 15*time.Second, res.RetryAfter)
	require.Equal(t, []string{"ip.burst"}, res.Err().(*ratelimit.DeniedError).Policies)
	require.Equal(t, "15", h.Get("Retry-After"))
	require.Equal(t, `"ip.60s";r=3;t=65, "ip.burst";r=0;t=15`, h.Get("RateLimit"), "a denial charges nothing")
	q.store.err = errors.New("gone")
	q.serve(func(c *reqctx.Host) { require.ErrorIs(t, p.Require(c), ratelimit.ErrStore) })
}

func TestSeveralPolicies(t *testing.T) {
	roomy, tight := ipPolicy("roomy", 100), ipPolicy("tight", 1)
	roomy.Headers, tight.Headers = ratelimit.HeadersDraft10AndX, ratelimit.HeadersDraft10AndX
	brief := &ratelimit.Policy{Name: "brief", Key: ratelimit.ByIP(), Rules: []ratelimit.Rule{ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1, Per: 1500 * time.Millisecond, Interval: 500 * time.Millisecond, Span: 3 * time.Second})}}
	q := provide(t, roomy, tight, brief)
	_, h := q.take("roomy", "tight", "brief")
	require.Equal(t, http.Header{
		"Ratelimit-Policy":      {`"roomy";q=100;w=60, "tight";q=1;w=60, "brief";q=1`},
		"Ratelimit":             {`"roomy";r=99;t=65, "tight";r=0;t=65, "brief";r=0;t=2`},
		"X-Ratelimit-Limit":     {"1"},
		"X-Ratelimit-Remaining": {"0"},
		"X-Ratelimit-Reset":     {"65"},
	}, h)
	_, h = q.take("tight", "roomy")
	require.Equal(t, "1", h.Get("X-RateLimit-Limit"), "that of the one with the least left")
	_, h = q.take("tight", "brief")
	require.Equal(t, "65", h.Get("Retry-After"), "the longest wait")
	_, h = q.take("brief")
	require.Equal(t, "2", h.Get("Retry-After"))
	require.Empty(t, h.Get("X-RateLimit-Limit"))
}

func TestCount(t *testing.T) {
	q := provide(t, ipPolicy("ip", 5))
	for range 2 {
		q.take("ip")
		q.hand.now = q.hand.now.Add(30 * time.Second)
	}
	q.store.calls = 0
	q.serve(func(c *reqctx.Host) {
		p, l := q.policies[0], must(ratelimit.From(c))
		requireCount := func(want int64) {
			t.Helper()
			for range 3 {
				require.Equal(t, want, must(l.Count()))
			}
		}
		requireCount(2)
		require.Equal(t, 1, q.store.calls, "the count is resolved once")
		must(p.Take(c))
		requireCount(3)
		require.Equal(t, 3, q.store.calls, "and again after a charge")
		require.EqualValues(t, 1, must(p.CountIn(c, 20*time.Second)))
		_, err := p.CountIn(c, 601*time.Second)
		require.ErrorIs(t, err, ratelimit.ErrInterval)
		require.ErrorContains(t, err, "10m0s")
		require.True(t, must(p.Refund(c)))
		requireCount(2)
		must(p.Add(c, 2))
		requireCount(4)
	})
}

func TestRefundOnce(t *testing.T) {
	q := provide(t, ipPolicy("ip", 5))
	q.take("ip")
	h := q.serve(func(c *reqctx.Host) {
		l := q.policies[0]
		must(l.Take(c))
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if ok, err := l.Refund(c); !ok || err != nil {
					t.Error(ok, err)
				}
			})
		}
		wg.Wait()
		res := must(l.Take(c))
		require.True(t, res.Allowed, "the take's result stays")
		require.EqualValues(t, 4, must(l.Peek(c)).Remaining)
	})
	require.Equal(t, `"ip";r=4;t=65`, h.Get("RateLimit"))
	require.Empty(t, h.Get("Retry-After"))

	for range 4 {
		q.take("ip")
	}
	q.serve(func(c *reqctx.Host) {
		l := q.policies[0]
		require.False(t, must(l.Take(c)).Allowed)
		require.False(t, must(l.Refund(c)), "a denial has nothing to refund")
	})
}

// TestKeyThatTakesByItsOwnPolicy checks that a policy whose Key calls the policy's own methods returns a CycleError.
func TestKeyThatTakesByItsOwnPolicy(t *testing.T) {
	p := ipPolicy("ip", 5)
	p.Key = func(ctx context.Context, _ *http.Request) (string, error) { return "k", p.Require(ctx) }
	provide(t, p).serve(func(c *reqctx.Host) {
		_, peek := p.Peek(c)
		_, count := p.Count(c)
		for _, err := range []error{p.Require(c), peek, count} {
			require.ErrorAs(t, err, new(*lazy.CycleError))
			require.ErrorContains(t, err, "ratelimit.ip.")
		}
	})
}

func TestSubject(t *testing.T) {
	byKey := &ratelimit.Policy{Name: "key", Rules: ipPolicy("key", 5).Rules, Key: ratelimit.ByHeader("X-Key"), Fallback: ratelimit.ByIP()}
	q := provide(t, byKey)
	q.serve(func(c *reqctx.Host) {
		s := must(byKey.Subject(c))
		require.Equal(t, "key~192.0.2.1", s, "by the address, behind another sign")
		require.Zero(t, q.store.calls, "the store isn't asked")
		must(byKey.Take(c))
		require.Equal(t, s, must(byKey.Subject(c)))
	})
}

func TestZeroLimit(t *testing.T) {
	var l ratelimit.Limit
	_, want := l.Take()
	require.ErrorIs(t, want, reqctx.ErrNoProperty)
	requireLimitErrors(t, l, want)
}

func TestNoTakeNoHeader(t *testing.T) {
	q := provide(t, ipPolicy("ip", 5))
	h := q.serve(func(c *reqctx.Host) {
		p := q.policies[0]
		require.EqualValues(t, 5, must(p.Peek(c)).Remaining)
		require.Zero(t, must(p.Count(c)))
		require.False(t, must(p.Refund(c)))
	})
	require.Empty(t, h)
	require.Equal(t, 2, q.store.calls)
}
