package redisstore

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// longestTTL returns the longest TTL of a key of r after n units were charged.
func longestTTL(r ratelimit.Rule, n int64) time.Duration {
	switch r.Algorithm() {
	case "buckets":
		return r.Expiry()
	case "gcra":
		return time.Duration(n) * r.Per() / time.Duration(r.Limit())
	}
	return r.Per()
}

// TestNoKeyOutlivesItsUse checks the TTL of all keys after each op of every kind, with denials, blocks, other limits
// and refunds among them.
func TestNoKeyOutlivesItsUse(t *testing.T) {
	block := ratelimit.Block{After: 2, For: 90 * time.Second}
	for _, b := range []ratelimit.Block{{}, block} {
		eachRule(t, b, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
			var units int64
			run := func(op ratelimit.Op) ratelimit.Receipt {
				t.Helper()
				res := do(t, s, op)[0]
				units += op.N
				for _, key := range c.Keys(t.Context(), "*").Val() {
					ttl, most := c.PTTL(t.Context(), key).Val(), longestTTL(r, units)
					if strings.Contains(key, ":block:") {
						most = max(block.For, r.Per())
					}
					require.Positive(t, ttl, "%s after %v", key, op)
					require.LessOrEqual(t, ttl, most, "%s after %v", key, op)
				}
				return res.Receipt
			}
			for range 3 {
				ops := allKinds(r, run(takeOf(r, "k", 1)))
				for _, kind := range slices.Sorted(maps.Keys(ops)) {
					op := ops[kind]
					run(op)
					if kind == "add" || kind == "take" {
						op.Rule = r.WithLimit(6) // the level of this GCRA falls faster
						run(op)
					}
				}
				for range 3 {
					run(takeOf(r, "k", 5))
				}
			}
			require.NotEmpty(t, c.Keys(t.Context(), "*").Val())
		})
	}
}

// TestChargeRepairsLostTTL removes the TTL of all keys. A block gets its TTL back with the next denial that it
// counts, buckets with a new bucket, and a window with the next window.
func TestChargeRepairsLostTTL(t *testing.T) {
	for _, block := range []ratelimit.Block{{}, {After: 3, For: 90 * time.Second}} {
		eachRule(t, block, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
			clock := freeze(s)
			all := takeOf(r, "k", 5)
			require.True(t, do(t, s, all)[0].Allowed)
			require.False(t, do(t, s, all)[0].Allowed)
			repairs := func(key string, op ratelimit.Op) {
				t.Helper()
				clock.Advance(r.Interval())
				if r.Algorithm() == "window" && key == keyOf(s, "k", r) {
					clock.Advance(r.Per())
				}
				require.True(t, c.Persist(t.Context(), key).Val(), key)
				do(t, s, op)
				require.Positive(t, c.PTTL(t.Context(), key).Val(), key)
			}
			repairs(keyOf(s, "k", r), opOf(ratelimit.Add, r, "k", 1))
			if block.After > 0 {
				repairs(blockKeyOf(s, "k", r), all)
			}
		})
	}
}

func TestReadsProlongNothing(t *testing.T) {
	eachRule(t, ratelimit.Block{}, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
		ops := allKinds(r, ratelimit.Receipt{})
		for _, kind := range []string{"peek", "count", "refund", "reset"} {
			if op, ok := ops[kind]; ok {
				do(t, s, op)
			}
		}
		require.Zero(t, c.DBSize(t.Context()).Val(), "a read made a key")
		do(t, s, ops["take"])
		require.True(t, c.PExpire(t.Context(), keyOf(s, "k", r), 3*time.Second).Val())
		for _, kind := range []string{"peek", "count", "refund", "denied"} {
			if op, ok := ops[kind]; ok {
				do(t, s, op)
				require.LessOrEqual(t, c.PTTL(t.Context(), keyOf(s, "k", r)).Val(), 3*time.Second, kind)
			}
		}
	})
}

// TestNewBucketRestartsTTL checks the TTL of bucket counters, and that the first charge in the next bucket restarts it.
func TestNewBucketRestartsTTL(t *testing.T) {
	s, c, clock := frozen(t)
	for name, tt := range map[string]struct {
		o    ratelimit.BucketOptions
		want time.Duration
	}{
		"default":                  {ratelimit.BucketOptions{Limit: 5}, 1200 * time.Second},
		"longer expiry":            {ratelimit.BucketOptions{Limit: 5, Expiry: time.Hour}, time.Hour},
		"at least span + interval": {ratelimit.BucketOptions{Limit: 5, Expiry: 600 * time.Second}, 605 * time.Second},
		"rounded up to whole ms":   {ratelimit.BucketOptions{Limit: 5, Interval: time.Minute, Span: time.Hour, Expiry: 2*time.Hour + time.Microsecond}, 2*time.Hour + time.Millisecond},
	} {
		r := ratelimit.Buckets(tt.o)
		for _, kind := range []ratelimit.Kind{ratelimit.Take, ratelimit.Add, ratelimit.Take} {
			do(t, s, opOf(kind, r, "k", 1))
			ttl := c.PTTL(t.Context(), keyOf(s, "k", r)).Val()
			require.LessOrEqual(t, ttl, tt.want, name)
			require.Greater(t, ttl, tt.want-4*time.Second, name)
			c.PExpire(t.Context(), keyOf(s, "k", r), 25*time.Second)
			clock.Advance(r.Interval())
		}
		do(t, s, opOf(ratelimit.Reset, r, "k", 0))
	}
	require.Zero(t, c.DBSize(t.Context()).Val())
}

// TestClockThatWentBackKeepsTTL runs ops while the newest bucket is in the future.
func TestClockThatWentBackKeepsTTL(t *testing.T) {
	s, c, clock := frozen(t)
	r := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 9, Per: time.Minute, Interval: 5 * time.Second, Span: 600 * time.Second, Expiry: 600 * time.Second})
	ops := allKinds(r, do(t, s, takeOf(r, "k", 1))[0].Receipt)
	delete(ops, "reset")
	clock.Advance(-time.Minute)
	for kind, op := range ops {
		do(t, s, op)
		ttl := c.PTTL(t.Context(), keyOf(s, "k", r)).Val()
		require.LessOrEqual(t, ttl, 605*time.Second, kind)
		require.Greater(t, ttl, 600*time.Second, kind)
	}
}

// TestForgottenCounterBeginsAnew lets a counter expire. The quota is full again, and earlier receipts are void.
func TestForgottenCounterBeginsAnew(t *testing.T) {
	server := testhost.StartMiniredis(t)
	s := newStore(t, server.Client(), patient)
	r := ratelimit.Buckets(perMinute(5))
	charged := do(t, s, takeOf(r, "k", 5))[0].Receipt
	for _, d := range []time.Duration{1200*time.Second - time.Millisecond, time.Millisecond} {
		require.Len(t, server.Keys(), 1)
		server.FastForward(d)
		server.Advance(d)
	}
	require.Empty(t, server.Keys())
	require.True(t, do(t, s, takeOf(r, "k", 5))[0].Allowed)
	require.False(t, do(t, s, refundOf(r, "k", charged))[0].Allowed)
}

// TestClockNear1970 uses windows that begin before 1970.
func TestClockNear1970(t *testing.T) {
	s := newStore(t, testhost.StartRedis(t).Client(nil), patient)
	clock := time.Unix(10, 0)
	s.clock = func() time.Time { return clock }
	s.wall = s.clock
	for name, r := range lasting(ratelimit.Block{}) {
		results := do(t, s, takeOf(r, "k", 2), takeOf(r, "k", 2), takeOf(r, "k", 2), takeOf(r, "k", 1), opOf(ratelimit.Reset, r, "k", 0), takeOf(r, "k", 5))
		require.Equal(t, []int64{3, 1, 1, 0, 5, 0}, remains(results), name)
		require.False(t, results[2].Allowed, name)
	}
}
