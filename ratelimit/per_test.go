package ratelimit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/reqctx"
)

// Whatever is not set is derived: a unit leaves the count late by at most 5 % of Per.
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

// A denial of 5 per minute asks to wait for at most 63 s, and what it asks for is enough.
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

// TestMemoryOfTwoRulesPerUser has a policy of 3/s and 1000/day and 100,000 users.
func TestMemoryOfTwoRulesPerUser(t *testing.T) {
	h := newHand()
	m := newStore(t, memstore.Options{MaxKeys: 250_000, Clock: h.clock})
	l, err := ratelimit.NewLimiter(m, ratelimit.PerSecond(3), ratelimit.PerDay(1000))
	require.NoError(t, err)
	for i := range 100_000 {
		res, err := l.Take(t.Context(), "user:"+time.Duration(i).String(), 1)
		require.NoError(t, err)
		require.True(t, res.Allowed)
	}
	require.Equal(t, 200_000, m.Len(), "no counter was evicted")
	require.LessOrEqual(t, m.Bytes(), int64(60_000_000))
}

func TestRequire(t *testing.T) {
	q := provide(t, ratelimit.NewPolicy("search", ratelimit.ByIP(), ratelimit.PerMinute(1)))
	for i := range 2 {
		q.serve(func(c *reqctx.Host) {
			err := q.policies[0].Require(c)
			var denied *ratelimit.DeniedError
			require.Equal(t, i == 1, errors.As(err, &denied))
			require.Equal(t, i == 0, err == nil)
		})
	}
	q.store.err = errors.New("gone")
	q.serve(func(c *reqctx.Host) {
		l, err := ratelimit.From(c)
		require.NoError(t, err)
		require.ErrorIs(t, l.Require(), ratelimit.ErrStore)
	})
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
	who, err := subject()
	require.NoError(t, err)
	require.Equal(t, "user:ada", who)
	failure = errors.New("no database")
	_, err = subject()
	require.ErrorIs(t, err, failure)
}
