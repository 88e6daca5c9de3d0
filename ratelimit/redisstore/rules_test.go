package redisstore

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/internal/redistest"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// The promises that all rules keep alike.

// lasting are rules of limit 5 in a minute, with a block or without, and how long their
// keys live at most.
func lasting(block ratelimit.Block) map[string]ratelimit.Rule {
	return map[string]ratelimit.Rule{
		"buckets": ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Limit: 5, Per: time.Minute, Block: block})),
		"log":     ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: 5, Per: time.Minute, Block: block})),
		"stream":  ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: 5, Per: time.Minute, Encoding: ratelimit.Stream, Block: block})),
		"window":  ratelimit.Must(ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: 5, Per: time.Minute, Block: block})),
		"gcra":    ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 5, Per: time.Minute, Block: block})),
	}
}

// eachRule runs a test for every rule, with a Redis for all of them that is empty each time.
func eachRule(t *testing.T, block ratelimit.Block, test func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule)) {
	server := redistest.Start(t)
	for name, r := range lasting(block) {
		t.Run(name, func(t *testing.T) {
			c := server.Client(nil)
			require.NoError(t, c.FlushAll(t.Context()).Err())
			test(t, newStore(t, c, patient), c, r)
		})
	}
}

// allKinds are ops that work on a counter with the one unit of charged used.
func allKinds(r ratelimit.Rule, charged ratelimit.Receipt) map[string]ratelimit.Op {
	ops := everyKind(r, charged)
	ops["reset"] = ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Reset}
	if r.Algorithm() == "gcra" {
		delete(ops, "count")
	}
	return ops
}

// lives is how long a key of r may live after a charge of n, in all.
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
	server := redistest.Start(t)
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
	require.Equal(t, len(scripts)-1, evals, "only before Redis knew a script; none was of several algorithms")
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
			tier := ratelimit.Must(r.WithLimit(5 + 1)) // a GCRA's level falls faster
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

// TestEveryLostTTLIsRepaired has all keys lose theirs before an op of each kind.
func TestEveryLostTTLIsRepaired(t *testing.T) {
	for _, block := range []ratelimit.Block{{}, {After: 3, For: 90 * time.Second}} {
		eachRule(t, block, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
			for kind := range allKinds(r, ratelimit.Receipt{}) {
				require.NoError(t, c.FlushAll(t.Context()).Err())
				do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 5, Kind: ratelimit.Take})
				do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 5, Kind: ratelimit.Take}) // the block's first
				do(t, s, ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Reset})
				if block.After > 0 {
					do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 5, Kind: ratelimit.Take})
					do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 5, Kind: ratelimit.Take})
				} else {
					do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take})
				}
				before := c.Keys(t.Context(), "*").Val()
				require.Len(t, before, min(1+block.After, 2))
				for _, key := range before {
					require.True(t, c.Persist(t.Context(), key).Val(), key)
				}
				do(t, s, allKinds(r, ratelimit.Receipt{})[kind])
				for _, key := range c.Keys(t.Context(), "*").Val() {
					require.Positive(t, c.PTTL(t.Context(), key).Val(), "%s after %s", key, kind)
				}
			}
		})
	}
}

func TestQuestionsProlongNothing(t *testing.T) {
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

// TestAnAddBeyondTheLimitInADeniedGroup has a counter that is unknown, that is new, and
// whose units have left.
func TestAnAddBeyondTheLimitInADeniedGroup(t *testing.T) {
	server := redistest.Start(t)
	for name, r := range lasting(ratelimit.Block{}) {
		clock := time.Unix(1_000_000_000, 0)
		s := newStore(t, server.Client(nil), patient)
		s.clock = func() time.Time { return clock }
		full := ratelimit.Must(ratelimit.FixedWindow(ratelimit.WindowOptions{Name: "full", Limit: 1, Per: time.Hour}))
		one := ratelimit.Op{Rule: full, Key: "k", N: 1, Kind: ratelimit.Take}
		do(t, s, one)
		group := func(left int64) {
			t.Helper()
			res := do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 9, Kind: ratelimit.Add}, one)
			require.False(t, res[0].Allowed || res[0].Violated || res[1].Allowed, name)
			require.Equal(t, left, res[0].Remaining, name)
			require.GreaterOrEqual(t, res[0].RetryAfter, time.Duration(0), name)
		}
		group(5)
		do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 2, Kind: ratelimit.Take})
		group(3)
		clock = clock.Add(70 * time.Second)
		group(5)
		do(t, s, ratelimit.Op{Rule: full, Key: "k", Kind: ratelimit.Reset})
	}
}

// strangers put something into a key that is not a counter of any rule but own.
func strangers(own string) map[string]func(c *redis.Client, key string) {
	str := func(v string) func(*redis.Client, string) {
		return func(c *redis.Client, key string) { c.Set(context.Background(), key, v, 0) }
	}
	word := strings.Repeat("\x01", 7)
	out := map[string]func(c *redis.Client, key string){
		"empty string": str(""),
		"text":         str("a rather long string, as long as a counter's head"),
		"number":       str("7"),
		"hash":         func(c *redis.Client, key string) { c.HSet(context.Background(), key, "e", "b") },
		"list":         func(c *redis.Client, key string) { c.RPush(context.Background(), key, "a") },
		"set":          func(c *redis.Client, key string) { c.SAdd(context.Background(), key, "a") },
		"sorted set":   func(c *redis.Client, key string) { c.ZAdd(context.Background(), key, redis.Z{Score: 1, Member: "a"}) },
		"set of 21": func(c *redis.Client, key string) {
			c.ZAdd(context.Background(), key, redis.Z{Score: 1, Member: "a member of 21 bytes."})
		},
		"endless set": func(c *redis.Client, key string) {
			c.Do(context.Background(), "ZADD", key, "inf", strings.Repeat("\x01", 21))
		},
		"set of halves": func(c *redis.Client, key string) {
			c.Do(context.Background(), "ZADD", key, "1.5", strings.Repeat("\x01", 21))
		},
		"stream": func(c *redis.Client, key string) { c.Do(context.Background(), "XADD", key, "5-1", "f", "v") },
		"stream of 21": func(c *redis.Client, key string) {
			c.Do(context.Background(), "XADD", key, "5-1", "e", "a member of 21 bytes.")
		},
		"other field": func(c *redis.Client, key string) {
			c.Do(context.Background(), "XADD", key, "5-1", "f", strings.Repeat("\x01", 21))
		},
		"endless stream": func(c *redis.Client, key string) {
			c.Do(context.Background(), "XADD", key, "18446744073709551615-1", "e", strings.Repeat("\x01", 21))
		},
		"empty stream": func(c *redis.Client, key string) {
			c.Do(context.Background(), "XADD", key, "9007199254740999-1", "e", "v")
			c.Do(context.Background(), "XDEL", key, "9007199254740999-1")
		},
	}
	for rule, mark := range map[string]string{"buckets": "lrb1", "window": "lrw1", "gcra": "lrg1", "block": "lrd1"} {
		out[rule+"' mark"] = str(mark)
		out[rule+"' truncated"] = str(mark + word + word[:6])
		out[rule+"' head of high bytes"] = str(mark + strings.Repeat("\xff", 21))
		out[rule+"' all of high bytes"] = str(mark + strings.Repeat("\xff", 21+121*7))
		if rule != own {
			out[rule+"' counter"] = str(mark + word + word)
			out[rule+"' longer counter"] = str(mark + word + word + word)
		}
	}
	out["buckets' head"] = str("lrb1" + word + "\x01\x00\x00\x00\x00\x00\x00" + word)
	out["buckets' ring, cut"] = str("lrb1" + word + "\x01\x00\x00\x00\x00\x00\x00" + word + strings.Repeat("\x00", 120*7))
	return out
}

// TestStrangersFailTheirCallerOnly has 64 callers share a script, one of whom asks about a
// key that is something else's, and another about one that is in order.
func TestStrangersFailTheirCallerOnly(t *testing.T) {
	for _, block := range []ratelimit.Block{{}, {After: 1, For: time.Minute}} {
		eachRule(t, block, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
			key := keyOf(s, "k", r)
			if block.After > 0 {
				key = s.key("k", blockName(r))
			}
			own := r.Algorithm()
			if block.After > 0 {
				own = "block"
			}
			for what, put := range strangers(own) {
				c.Del(t.Context(), key)
				put(c, key)
				before := c.Dump(t.Context(), key).Val()
				require.NotEmpty(t, before, what)
				ops := allKinds(r, ratelimit.Receipt{N: 1, At: 1, Life: 1})
				calls := make([]redispipe.Call, 0, 2*len(ops))
				for _, kind := range slices.Sorted(maps.Keys(ops)) {
					op := ops[kind]
					_, err := s.DoOne(t.Context(), op)
					require.ErrorIs(t, err, ErrForeign, "%s: %s", what, kind)
					require.ErrorContains(t, err, "{k}", "%s: %s", what, kind)
					for _, subject := range []string{"k", "good"} {
						op.Key = subject
						call, err := s.call([]ratelimit.Op{op})
						require.NoError(t, err)
						calls = append(calls, call)
					}
				}
				require.Equal(t, before, c.Dump(t.Context(), key).Val(), what)
				for i, reply := range joined(t, s, calls) {
					require.Equal(t, i%2 == 0, reply[verdict] == foreign, "%s: call %d of %d", what, i, len(calls))
				}
				require.Equal(t, before, c.Dump(t.Context(), key).Val(), "%s, joined", what)
				c.Del(t.Context(), key)
				do(t, s, ratelimit.Op{Rule: r, Key: "good", Kind: ratelimit.Reset})
			}
		})
	}
}

// TestACounterThatWasCutIsForeign takes its last bucket from a counter in use.
func TestACounterThatWasCutIsForeign(t *testing.T) {
	c := redistest.Start(t).Client(nil)
	s := newStore(t, c, patient)
	clock := time.Unix(1_000_000_000, 0)
	s.clock = func() time.Time { return clock }
	r := lasting(ratelimit.Block{})["buckets"]
	free := ratelimit.Must(r.WithLimit(0))
	ops := allKinds(r, do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take})[0].Receipt)
	ops["free add"] = ratelimit.Op{Rule: free, Key: "k", N: 1, Kind: ratelimit.Add}
	key := keyOf(s, "k", r)
	whole := c.Get(t.Context(), key).Val()
	cut := whole[:len(whole)-7]
	for kind, op := range ops {
		require.NoError(t, c.Set(t.Context(), key, cut, 0).Err())
		_, err := s.DoOne(t.Context(), op)
		require.ErrorIs(t, err, ErrForeign, kind)
		require.Equal(t, cut, c.Get(t.Context(), key).Val(), kind)
	}
}

// joined runs calls at one moment, while others are under way.
func joined(t *testing.T, s *Store, calls []redispipe.Call) [][]int64 {
	t.Helper()
	replies := make([][]int64, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() {
			reply, err := s.pipe.Run(t.Context(), call)
			if err != nil {
				t.Error(err)
				reply.Ints = []int64{0}
			}
			replies[i] = reply.Ints
		})
	}
	wg.Wait()
	return replies
}

// TestDamageIsNobodyElses changes bytes of counters, and entries of logs, that are in use.
func TestDamageIsNobodyElses(t *testing.T) {
	eachRule(t, ratelimit.Block{}, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
		key := keyOf(s, "k", r)
		ops := allKinds(r, ratelimit.Receipt{})
		rest := ratelimit.Op{Rule: ratelimit.Must(r.WithLimit(1 << 20)), Key: "good", N: 1, Kind: ratelimit.Take}
		for range 200 {
			ops["reset"] = ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Peek, N: 1}
			c.Del(t.Context(), key)
			var charged ratelimit.Receipt
			for range 3 {
				charged = do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take})[0].Receipt
			}
			ops["refund"] = ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Refund, Receipt: charged}
			junk := make([]byte, 21)
			for i := range junk {
				junk[i] = byte(rand.IntN(256)) >> rand.IntN(8)
			}
			switch r.Algorithm() + r.Encoding().String() {
			case "log" + ratelimit.SortedSet.String():
				at := c.ZRangeWithScores(t.Context(), key, 0, -1).Val()[rand.IntN(3)]
				c.ZRem(t.Context(), key, at.Member)
				c.ZAdd(t.Context(), key, redis.Z{Score: at.Score, Member: string(junk)})
			case "log" + ratelimit.Stream.String():
				at := c.XRange(t.Context(), key, "-", "+").Val()[rand.IntN(3)]
				c.XDel(t.Context(), key, at.ID)
				if rand.IntN(2) == 0 {
					c.Do(t.Context(), "XADD", key, "*", "e", string(junk)) // too early: it is in ms
				}
			default:
				length := c.StrLen(t.Context(), key).Val()
				junk = junk[:min(length, 7)]
				c.SetRange(t.Context(), key, rand.Int64N(length-int64(len(junk))+1), string(junk))
			}
			for kind, op := range ops {
				var wg sync.WaitGroup
				for _, op := range []ratelimit.Op{rest, op, rest, op, rest} {
					wg.Go(func() {
						_, err := s.DoOne(t.Context(), op)
						if err != nil && (op.Key != "k" || !errors.Is(err, ErrForeign) && !errors.Is(err, ratelimit.ErrOverflow)) {
							t.Errorf("%s: of %s: %v; %x", kind, op.Key, err, junk)
						}
					})
				}
				wg.Wait()
			}
			if t.Failed() {
				return
			}
		}
	})
}
