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

// These tests check promises that all rules share.

// lasting returns rules of 5 a minute, with a block or without.
func lasting(block ratelimit.Block) map[string]ratelimit.Rule {
	return map[string]ratelimit.Rule{
		"buckets": ratelimit.Buckets(perMinute(5)).WithBlock(block),
		"log":     ratelimit.SlidingLog(5, time.Minute).WithBlock(block),
		"stream":  ratelimit.SlidingLog(5, time.Minute).WithStream().WithBlock(block),
		"window":  ratelimit.FixedWindow(5, time.Minute).WithBlock(block),
		"gcra":    ratelimit.GCRA(5, time.Minute).WithBlock(block),
	}
}

// eachRule runs a test for every rule, with a Redis for all of them that is empty each time.
func eachRule(t *testing.T, block ratelimit.Block, test func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule)) {
	server := testhost.StartRedis(t)
	for name, r := range lasting(block) {
		t.Run(name, func(t *testing.T) {
			c := server.Client(nil)
			require.NoError(t, c.FlushAll(t.Context()).Err())
			test(t, newStore(t, c, patient), c, r)
		})
	}
}

// allKinds returns the ops of everyKind and a Reset, without the kinds that the rule's algorithm does not support.
func allKinds(r ratelimit.Rule, charged ratelimit.Receipt) map[string]ratelimit.Op {
	ops := everyKind(r, charged)
	ops["reset"] = ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Reset}
	if r.Algorithm() == "gcra" {
		delete(ops, "count")
	}
	return ops
}

// lives returns the longest TTL of a key of r after a charge of n.
func lives(r ratelimit.Rule, n int64) time.Duration {
	switch r.Algorithm() {
	case "buckets":
		return r.Expiry()
	case "gcra":
		return time.Duration(n) * r.Per() / time.Duration(r.Limit())
	}
	return r.Per()
}

func TestEveryKindIsOneCall(t *testing.T) {
	server := testhost.StartRedis(t)
	s := newStore(t, server.Client(nil), patient)
	for _, block := range []ratelimit.Block{{}, {After: 2, For: time.Minute}} {
		for name, r := range lasting(block) {
			charged := do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take})[0].Receipt
			for kind, op := range allKinds(r, charged) {
				before, _ := server.Calls("evalsha")
				do(t, s, op)
				after, _ := server.Calls("evalsha")
				require.Equal(t, before+1, after, "%s: %s", name, kind)
			}
		}
	}
	evals, _ := server.Calls("eval")
	require.Equal(t, 4*len(algorithms)-1+len(theScripts.group)-1, evals, "only before Redis knew a script; a GCRA has no count, and no group had several algorithms")
}

// TestNoKeyOutlivesItsUse looks at all keys after ops of every kind, one after another and
// each on its own, with denials, blocks, tiers and refunds among them.
func TestNoKeyOutlivesItsUse(t *testing.T) {
	block := ratelimit.Block{After: 2, For: 90 * time.Second}
	for _, b := range []ratelimit.Block{{}, block} {
		eachRule(t, b, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
			var units int64
			look := func(what string) {
				t.Helper()
				for _, key := range c.Keys(t.Context(), "*").Val() {
					ttl := c.PTTL(t.Context(), key).Val()
					most := lives(r, units)
					if strings.Contains(key, ":block:") {
						most = block.For
					}
					require.Positive(t, ttl, "%s after %s", key, what)
					require.LessOrEqual(t, ttl, most, "%s after %s", key, what)
				}
			}
			tier := r.WithLimit(5 + 1) // a GCRA's level falls faster
			for range 3 {
				charged := do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take})[0].Receipt
				units++
				look("take")
				for _, kind := range slices.Sorted(maps.Keys(allKinds(r, charged))) {
					op := allKinds(r, charged)[kind]
					do(t, s, op)
					units += op.N
					look(kind)
					if kind == "add" || kind == "take" {
						op.Rule = tier
						do(t, s, op)
						units += op.N
						look(kind + " by another tier")
					}
				}
				for range 3 {
					do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 5, Kind: ratelimit.Take})
					units += 5
					look("takes up to the limit")
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
			clock := time.Unix(1_000_000_000, 0)
			s.clock = func() time.Time { return clock }
			all := ratelimit.Op{Rule: r, Key: "k", N: 5, Kind: ratelimit.Take}
			require.True(t, do(t, s, all)[0].Allowed)
			require.False(t, do(t, s, all)[0].Allowed)
			repairs := func(key string, op ratelimit.Op) {
				t.Helper()
				clock = clock.Add(r.Interval())
				if r.Algorithm() == "window" && key == keyOf(s, "k", r) {
					clock = clock.Add(r.Per())
				}
				require.True(t, c.Persist(t.Context(), key).Val(), key)
				do(t, s, op)
				require.Positive(t, c.PTTL(t.Context(), key).Val(), key)
			}
			repairs(keyOf(s, "k", r), ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Add})
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
		require.Zero(t, c.DBSize(t.Context()).Val(), "of an unknown key")
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
