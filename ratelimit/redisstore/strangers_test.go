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

// Keys that hold something else, and calls that share a script with those who ask for them.

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
	out["emptied stream"] = func(c *redis.Client, key string) {
		c.Do(context.Background(), "XADD", key, "5-1", "e", "v")
		c.Do(context.Background(), "XDEL", key, "5-1")
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

// TestAGroupFailsAsAWhole has the damage found when its first op was answered.
func TestAGroupFailsAsAWhole(t *testing.T) {
	c := redistest.Start(t).Client(nil)
	s := newStore(t, c, patient)
	clock := time.Unix(1_000_000_000, 0)
	s.clock = func() time.Time { return clock }
	r := lasting(ratelimit.Block{})["buckets"]
	for range 3 {
		do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take})
		clock = clock.Add(r.Interval())
	}
	clock = clock.Add(-r.Interval())
	within := clock.Unix()/5 - 5 // a bucket in the window of 12
	require.NoError(t, c.SetRange(t.Context(), keyOf(s, "k", r), 25+7*(within%121), strings.Repeat("\xff", 7)).Err())
	count := ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Count}
	require.EqualValues(t, 3, do(t, s, count)[0].Count)
	_, err := s.Do(t.Context(), []ratelimit.Op{count, {Rule: r, Key: "k", N: 4, Kind: ratelimit.Peek}})
	require.ErrorIs(t, err, ErrForeign)
}

// TestAStreamThatWasSetAhead takes no more events, which is nobody else's error.
func TestAStreamThatWasSetAhead(t *testing.T) {
	c := redistest.Start(t).Client(nil)
	s := newStore(t, c, patient)
	r := lasting(ratelimit.Block{})["stream"]
	take := ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take}
	do(t, s, take)
	require.NoError(t, c.Do(t.Context(), "XSETID", keyOf(s, "k", r), "9007199254740999-1").Err())
	before := c.Dump(t.Context(), keyOf(s, "k", r)).Val()
	last := take
	last.N = 4 // not for the quick path
	var calls []redispipe.Call
	for _, op := range []ratelimit.Op{take, last, {Rule: r, Key: "good", N: 1, Kind: ratelimit.Take}} {
		call, err := s.call([]ratelimit.Op{op})
		require.NoError(t, err)
		calls = append(calls, call)
	}
	replies := joined(t, s, calls)
	require.EqualValues(t, []int64{foreign, foreign, 1}, []int64{replies[0][verdict], replies[1][verdict], replies[2][verdict]})
	require.Equal(t, before, c.Dump(t.Context(), keyOf(s, "k", r)).Val())
	require.EqualValues(t, 4, do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Peek})[0].Remaining)
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
