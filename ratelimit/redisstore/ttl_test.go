package redisstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

func TestKeysLiveAsLongAsTheyAreUseful(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	clock := time.Unix(1_000_000_000, 0)
	s.clock = func() time.Time { return clock }
	for name, tt := range map[string]struct {
		o    ratelimit.BucketOptions
		want time.Duration
	}{
		"default":              {ratelimit.BucketOptions{Limit: 5}, 1200 * time.Second},
		"longer":               {ratelimit.BucketOptions{Limit: 5, Expiry: time.Hour}, time.Hour},
		"what can be counted":  {ratelimit.BucketOptions{Limit: 5, Expiry: 600 * time.Second}, 605 * time.Second},
		"a part of a ms is up": {ratelimit.BucketOptions{Limit: 5, Interval: time.Minute, Span: time.Hour, Expiry: 2*time.Hour + time.Microsecond}, 2*time.Hour + time.Millisecond},
	} {
		r := ratelimit.Buckets(tt.o)
		for _, kind := range []ratelimit.Kind{ratelimit.Take, ratelimit.Add, ratelimit.Take} {
			do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: kind})
			ttl := c.PTTL(t.Context(), keyOf(s, "k", r)).Val()
			require.LessOrEqual(t, ttl, tt.want, name)
			require.Greater(t, ttl, tt.want-4*time.Second, name)
			// The first charge of the next bucket begins it anew.
			c.PExpire(t.Context(), keyOf(s, "k", r), 25*time.Second)
			clock = clock.Add(r.Interval())
		}
		do(t, s, ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Reset})
	}
	require.Zero(t, c.DBSize(t.Context()).Val())
}

// TestClockThatWentBackKeepsTTL charges a bucket that begins a minute from now: its key
// keeps its TTL.
func TestClockThatWentBackKeepsTTL(t *testing.T) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	clock := time.Unix(1_000_000_000, 0)
	s.clock = func() time.Time { return clock }
	r := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 9, Per: time.Minute, Interval: 5 * time.Second, Span: 600 * time.Second, Expiry: 600 * time.Second})
	charged := do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take})[0].Receipt
	clock = clock.Add(-time.Minute)
	for kind, op := range everyKind(r, charged) {
		do(t, s, op)
		ttl := c.PTTL(t.Context(), keyOf(s, "k", r)).Val()
		require.LessOrEqual(t, ttl, 605*time.Second, kind)
		require.Greater(t, ttl, 600*time.Second, kind)
	}
}

// everyKind returns ops by name for a counter that has a limit of 5 and 1 used unit. It has every kind except Reset.
func everyKind(r ratelimit.Rule, charged ratelimit.Receipt) map[string]ratelimit.Op {
	return map[string]ratelimit.Op{
		"take":   {Rule: r, Key: "k", N: 1, Kind: ratelimit.Take},
		"denied": {Rule: r, Key: "k", N: 5, Kind: ratelimit.Take},
		"peek":   {Rule: r, Key: "k", N: 1, Kind: ratelimit.Peek},
		"add":    {Rule: r, Key: "k", N: 1, Kind: ratelimit.Add},
		"count":  {Rule: r, Key: "k", Kind: ratelimit.Count},
		"refund": {Rule: r, Key: "k", Kind: ratelimit.Refund, Receipt: charged},
	}
}

// TestForgottenCounterBeginsAnew also checks that an earlier receipt is worthless.
func TestForgottenCounterBeginsAnew(t *testing.T) {
	server := testhost.StartMiniredis(t)
	s := newStore(t, server.Client(), patient)
	r := ratelimit.Buckets(perMinute(5))
	take := ratelimit.Op{Rule: r, Key: "k", N: 5, Kind: ratelimit.Take}
	charged := do(t, s, take)[0].Receipt
	for _, d := range []time.Duration{1200*time.Second - time.Millisecond, time.Millisecond} {
		require.Len(t, server.Keys(), 1)
		server.FastForward(d)
		server.Advance(d)
	}
	require.Empty(t, server.Keys())

	require.True(t, do(t, s, take)[0].Allowed)
	require.False(t, do(t, s, ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Refund, Receipt: charged})[0].Allowed)
}

// TestClockNear1970 has windows that begin before it.
func TestClockNear1970(t *testing.T) {
	s := newStore(t, testhost.StartRedis(t).Client(nil), patient)
	for name, r := range lasting(ratelimit.Block{}) {
		clock := time.Unix(10, 0)
		s.clock = func() time.Time { return clock }
		take := func(n int64) ratelimit.Result {
			return do(t, s, ratelimit.Op{Rule: r, Key: "k", N: n, Kind: ratelimit.Take})[0]
		}
		require.EqualValues(t, 3, take(2).Remaining, name)
		require.EqualValues(t, 1, take(2).Remaining, name)
		require.False(t, take(2).Allowed, name)
		require.EqualValues(t, 0, take(1).Remaining, name)
		do(t, s, ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Reset})
		require.EqualValues(t, 0, take(5).Remaining, name)
	}
}
