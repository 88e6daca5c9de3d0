package ratelimit_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
)

// TestDerivedBuckets checks the defaults of options that depend on Per.
func TestDerivedBuckets(t *testing.T) {
	for _, c := range []struct {
		rule     ratelimit.Rule
		name     string
		interval time.Duration
		span     time.Duration
	}{
		{ratelimit.PerSecond(3), "1s", 50 * time.Millisecond, time.Second},
		{ratelimit.PerMinute(5), "60s", 3 * time.Second, time.Minute},
		{ratelimit.PerHour(100), "1h", 3 * time.Minute, time.Hour},
		{ratelimit.PerDay(1000), "24h", 72 * time.Minute, 24 * time.Hour},
		{ratelimit.Per(1, 1500*time.Millisecond), "1500ms", 75 * time.Millisecond, 1500 * time.Millisecond},
		{ratelimit.Per(1, 101*time.Microsecond), "101us", 5 * time.Microsecond, 105 * time.Microsecond},
		{ratelimit.Per(1, time.Microsecond), "1us", time.Microsecond, 3 * time.Microsecond},
		{ratelimit.Per(1, 10*365*24*time.Hour), "87600h", 4380 * time.Hour, 10 * 365 * 24 * time.Hour},
		{ratelimit.Per(1, ratelimit.MaxDuration), "876000h", ratelimit.MaxDuration / 20, ratelimit.MaxDuration},
		{ratelimit.Buckets(ratelimit.BucketOptions{Limit: 3, Per: time.Second, Interval: 300 * time.Millisecond}), "1s", 300 * time.Millisecond, 1200 * time.Millisecond},
		{ratelimit.Buckets(ratelimit.BucketOptions{Limit: 3, Per: 7 * time.Second, Span: time.Minute}), "7s", 350 * time.Millisecond, 60200 * time.Millisecond},
	} {
		require.NoError(t, c.rule.Err())
		require.Equal(t, []any{c.name, c.interval, c.span}, []any{c.rule.Name(), c.rule.Interval(), c.rule.Span()})
	}
	require.Equal(t, ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1000, Per: 24 * time.Hour}), ratelimit.PerDay(1000))
}

var testUser = reqctx.NewKey[string]("ratelimit_test.user")

func TestByProperty(t *testing.T) {
	key := ratelimit.ByProperty(testUser, func(u string) string { return u })
	q := provide(t, ratelimit.NewPolicy("user", key, ratelimit.PerMinute(1)))
	subject := func() (subject string, err error) {
		q.serve(func(c *reqctx.Host) {
			subject, err = q.policies[0].Subject(c)
		})
		return subject, err
	}
	_, err := subject()
	require.ErrorIs(t, err, reqctx.ErrNoProperty)

	user, failure := "", error(nil)
	reqctx.Provide(q.reg, testUser, reqctx.Prop[string]{Resolve: func(context.Context) (string, error) { return user, failure }})
	_, err = subject()
	require.ErrorIs(t, err, ratelimit.ErrNoKey)
	user = "ada"
	who := must(subject())
	require.Equal(t, "user:ada", who)
	failure = errors.New("no database")
	_, err = subject()
	require.ErrorIs(t, err, failure)
}

// TestRetryAfterOfFivePerMinute checks that RetryAfter is at most 63 s and that a take passes after this wait.
func TestRetryAfterOfFivePerMinute(t *testing.T) {
	for offset := time.Duration(0); offset < 3*time.Second; offset += 250 * time.Millisecond {
		h := newHand()
		h.now = h.now.Add(offset)
		l := newLimiter(t, newStore(t, memstore.Options{Clock: h.clock}), ratelimit.PerMinute(5))
		_, err := l.Take(t.Context(), "k", 5)
		require.NoError(t, err)
		res, err := l.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		require.False(t, res.Allowed)
		seconds := res.Err().(*ratelimit.DeniedError).RetrySeconds()
		require.True(t, 60 <= seconds && seconds <= 63, seconds)
		h.now = h.now.Add(time.Duration(seconds) * time.Second)
		res, err = l.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		require.True(t, res.Allowed)
	}
}

func TestDecisions(t *testing.T) {
	two, one := ipPolicy("two", 5), ipPolicy("one", 5)
	two.Rules = append(two.Rules, ratelimit.PerHour(9))
	reg := reqctx.NewRegistry(reqctx.Options{})
	ratelimit.Provide(reg, newStore(t, memstore.Options{}), two, one, ipPolicy("unused", 5))
	c := reqctx.New(t.Context(), reg)
	c.SetRequest(httptest.NewRequest("GET", "/", nil))
	require.NoError(t, one.Require(c))
	require.NoError(t, two.Require(c))
	var quotas []string
	for d := range ratelimit.Decisions(c) {
		require.True(t, d.Result.Allowed)
		require.Same(t, map[string]*ratelimit.Policy{"one": one, "two": two}[d.Policy], d.Of)
		quotas = append(quotas, d.Quota)
	}
	require.ElementsMatch(t, []string{"one", "two.60s", "two.1h"}, quotas)
	for range ratelimit.Decisions(c) {
		break // the iterator must not call yield again
	}
	require.NoError(t, c.Finish())
}

// TestDecisionsOfAnInnerRequest checks that Decisions returns only the takes of the innermost request.
func TestDecisionsOfAnInnerRequest(t *testing.T) {
	q, r := provide(t, ipPolicy("outer", 5)), provide(t, ipPolicy("inner", 5))
	q.serve(func(c *reqctx.Host) {
		inner := reqctx.New(c, r.reg)
		inner.SetRequest(c.Request())
		require.NoError(t, q.policies[0].Require(inner))
		require.NoError(t, r.policies[0].Require(inner))
		for ctx, want := range map[context.Context]string{c: "outer", inner: "inner"} {
			var policies []string
			for d := range ratelimit.Decisions(ctx) {
				policies = append(policies, d.Policy)
			}
			require.Equal(t, []string{want}, policies)
		}
		require.NoError(t, inner.Finish())
	})
}
