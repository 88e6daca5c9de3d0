package redisstore

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// put stores a value in a key.
type put = func(c *redis.Client, key string)

func aString(v string) put {
	return func(c *redis.Client, key string) { c.Set(context.Background(), key, v, 0) }
}

func aHash(fields ...string) put {
	return func(c *redis.Client, key string) { c.HSet(context.Background(), key, fields) }
}

func aSet(score, member string) put {
	return func(c *redis.Client, key string) { c.Do(context.Background(), "ZADD", key, score, member) }
}

func aStream(id, field, value string) put {
	return func(c *redis.Client, key string) { c.Do(context.Background(), "XADD", key, id, field, value) }
}

// foreignValues returns values that are not a valid counter of the algorithm own. If own is "block", they are not a valid
// block.
func foreignValues(own string) map[string]put {
	word, large := strings.Repeat("\x01", 7), "9007199254740994"
	all := map[string]map[string]put{
		"": {
			"empty string": aString(""),
			"text":         aString("a rather long string, as long as a counter's head"),
			"number":       aString("7"),
			"hash":         aHash("e", "b"),
			"list":         func(c *redis.Client, key string) { c.RPush(context.Background(), key, "a") },
			"set":          func(c *redis.Client, key string) { c.SAdd(context.Background(), key, "a") },
			"sorted set":   aSet("1", "a"),
			"stream":       aStream("5-1", "f", "v"),
		},
		"pair": {
			"negative":     aString("-5 3"),
			"fraction":     aString("5 3.5"),
			"three":        aString("5 3 1"),
			"spaces":       aString(" 5 3"),
			"hexadecimal":  aString("0x5 3"),
			"large first":  aString("18014398509481988 3"), // above 2^54; a time may be a century after 2^53
			"large second": aString("5 9223372036854775807"),
			"long":         aString("5 " + strings.Repeat("0", 40)),
			"buckets'":     aString("lrb1" + strings.Repeat(word, 124)),
		},
		"window": {
			"no n":      aHash("ends", "9"),
			"no end":    aHash("n", "9"),
			"fraction":  aHash("ends", "9", "n", "1.5"),
			"negative":  aHash("ends", "9", "n", "-1"),
			"large":     aHash("ends", "9", "n", "18014398509481988"),
			"large end": aHash("ends", "18014398509481988", "n", "9"),
		},
		"buckets": {
			"mark":          aString("lrb1"),
			"head, cut":     aString("lrb1" + word + word + word[:6]),
			"head":          aString("lrb1" + word + "\x01\x00\x00\x00\x00\x00\x00" + word),
			"ring, cut":     aString("lrb1" + word + "\x01\x00\x00\x00\x00\x00\x00" + word + strings.Repeat("\x00", 120*7)),
			"epoch of 2^53": aString("lrb1" + word + "\x00\x00\x00\x00\x00\x00\x20" + word + strings.Repeat(word, 121)),
			"high bytes":    aString("lrb1" + strings.Repeat("\xff", 21)),
		},
		"log": {
			"infinite":        aSet("inf", "5 3"),
			"fraction":        aSet("1.5", "5 3"),
			"large":           aSet(large, "5 3"),
			"large sum":       aSet("5", large+" 3"),
			"nothing":         aSet("5", "5 0"),
			"n above its sum": aSet("5", "5 6"),
			"three":           aSet("5", "5 3 1"),
			"negative":        aSet("5", "-5 3"),
		},
		"stream": {
			"other field":     aStream("5-3", "m", "3"),
			"fraction":        aStream("5-3", "n", "1.5"),
			"hexadecimal":     aStream("5-3", "n", "0x3"),
			"nothing":         aStream("5-3", "n", "0"),
			"n above its sum": aStream("5-3", "n", "4"),
			"large":           aStream(large+"-3", "n", "3"),
			"endless":         aStream("18446744073709551615-3", "n", "3"),
			"large sum":       aStream("5-"+large, "n", "3"),
		},
	}
	out := maps.Clone(all[""])
	switch own {
	case "gcra", "block":
		own = "pair"
	case "calendar":
		own = "window"
	}
	for what, put := range all[own] {
		out["its own type: "+what] = put
	}
	return out
}

// TestForeignKeysFailOnlyTheirCallers makes calls that share a script. Calls for a key with a foreign value fail, and calls
// for other keys succeed.
func TestForeignKeysFailOnlyTheirCallers(t *testing.T) {
	for _, block := range []ratelimit.Block{{}, {After: 1, For: time.Minute}} {
		eachRule(t, block, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
			key, own := keyOf(s, "k", r), algorithmOf(r.Layout()).name
			if block.After > 0 {
				key, own = blockKeyOf(s, "k", r), "block"
			}
			for what, put := range foreignValues(own) {
				c.Del(t.Context(), key)
				put(c, key)
				before := c.Dump(t.Context(), key).Val()
				require.NotEmpty(t, before, what)
				foreign := func(err error, kind string) {
					t.Helper()
					require.ErrorIs(t, err, ErrKeyType, "%s: %s", what, kind)
					require.ErrorIs(t, err, ratelimit.ErrStore, "%s: %s", what, kind)
					require.ErrorContains(t, err, "{k}", "%s: %s", what, kind)
					require.NotContains(t, err.Error(), "WRONGTYPE", "%s: %s", what, kind)
				}
				kinds := allKinds(r, ratelimit.Receipt{N: 1, At: 1, Generation: 1})
				if block.After > 0 { // adds and counts do not read the block
					delete(kinds, "add")
					delete(kinds, "count")
				}
				var ops []ratelimit.Op
				for _, kind := range slices.Sorted(maps.Keys(kinds)) {
					op := kinds[kind]
					_, err := s.DoOne(t.Context(), op)
					foreign(err, kind)
					_, err = s.Do(t.Context(), []ratelimit.Op{op})
					foreign(err, kind)
					good := op
					good.Key = "good"
					_, err = s.Do(t.Context(), []ratelimit.Op{good, op, good})
					foreign(err, kind)
					ops = append(ops, good, op, op, good)
				}
				_, errs := atOnce(t.Context(), s, ops...)
				for i, op := range ops {
					if op.Key == "k" {
						foreign(errs[i], op.Kind.String())
					} else {
						require.NoError(t, errs[i], "%s: %v", what, op.Kind)
					}
				}
				require.Equal(t, before, c.Dump(t.Context(), key).Val(), what)
				do(t, s, opOf(ratelimit.Reset, r, "good", 0))
			}
		})
	}
}

// TestTruncatedRingIsNotExtended removes the last bucket of a counter. A charge in a new bucket fails, but a charge in the
// newest bucket may still succeed.
func TestTruncatedRingIsNotExtended(t *testing.T) {
	s, c, clock := frozen(t)
	r, other := lasting(ratelimit.Block{})["buckets"], hourlyWindow(9)
	ops := allKinds(r, do(t, s, takeOf(r, "k", 1))[0].Receipt)
	ops["unlimited add"] = opOf(ratelimit.Add, r.WithoutLimit(), "k", 1)
	key := keyOf(s, "k", r)
	whole := c.Get(t.Context(), key).Val()
	cut := whole[:len(whole)-7]
	for kind, op := range ops {
		require.NoError(t, c.Set(t.Context(), key, cut, 0).Err())
		_, err := s.DoOne(t.Context(), op)
		if err != nil {
			require.ErrorIs(t, err, ErrKeyType, kind)
		}
		if kind != "reset" {
			require.EqualValues(t, len(cut), c.StrLen(t.Context(), key).Val(), kind)
		}
	}
	require.NoError(t, c.Set(t.Context(), key, cut, 0).Err())
	for _, later := range []time.Duration{r.Interval(), r.Span(), 10 * r.Span()} {
		clock.Advance(later)
		for kind, op := range ops {
			_, err := s.DoOne(t.Context(), op)
			require.ErrorIs(t, err, ErrKeyType, kind)
			_, err = s.Do(t.Context(), []ratelimit.Op{opOf(ratelimit.Take, other, "k", 1), opOf(ratelimit.Take, r, "k", 1)})
			require.ErrorIs(t, err, ErrKeyType, kind)
			require.Equal(t, cut, c.Get(t.Context(), key).Val(), kind)
		}
	}
	require.Zero(t, do(t, s, opOf(ratelimit.Count, other, "k", 0))[0].Count, "the other rule was charged")
}

// TestDamagedBucketFailsTheCall damages one bucket of three. Only the search of a denied peek and the refund of an older
// charge read it.
func TestDamagedBucketFailsTheCall(t *testing.T) {
	for _, value := range []string{"\xff", "\x00"} {
		s, c, clock := frozen(t)
		r := lasting(ratelimit.Block{})["buckets"]
		charged := do(t, s, takeOf(r, "k", 1))[0].Receipt
		for range 2 {
			clock.Advance(r.Interval())
			do(t, s, takeOf(r, "k", 1))
		}
		key, bucket, op := keyOf(s, "k", r), clock.Now().Unix()/5, refundOf(r, "k", charged)
		if value == "\xff" {
			bucket, op = bucket-1, opOf(ratelimit.Peek, r, "k", 4)
		}
		require.NoError(t, c.SetRange(t.Context(), key, 25+7*(bucket%121), strings.Repeat(value, 7)).Err())
		before := c.Get(t.Context(), key).Val()
		count := opOf(ratelimit.Count, r, "k", 0)
		require.EqualValues(t, 3, do(t, s, count)[0].Count)
		_, err := s.Do(t.Context(), []ratelimit.Op{count, op})
		require.ErrorIs(t, err, ErrKeyType)
		require.Equal(t, before, c.Get(t.Context(), key).Val())
	}
}

// TestStreamWithFutureID checks that a stream that accepts no further events fails only its own callers.
func TestStreamWithFutureID(t *testing.T) {
	eachRule(t, ratelimit.Block{}, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
		if !r.Layout().Stream {
			return
		}
		take := takeOf(r, "k", 1)
		key := keyOf(s, "k", r)
		for _, left := range []int64{4, 5} {
			if left == 5 { // the second time, the stream has no events
				c.XTrimMaxLen(t.Context(), key, 0)
			} else {
				do(t, s, take)
			}
			require.NoError(t, c.Do(t.Context(), "XSETID", key, "9007199254740990-1").Err())
			before := c.Dump(t.Context(), key).Val()
			good := take
			good.Key = "good"
			_, errs := atOnce(t.Context(), s, take, good, take)
			require.ErrorIs(t, errs[0], ErrKeyType)
			require.NoError(t, errs[1])
			require.ErrorIs(t, errs[2], ErrKeyType)
			require.Equal(t, before, c.Dump(t.Context(), key).Val())
			require.Equal(t, left, do(t, s, opOf(ratelimit.Peek, r, "k", 1))[0].Remaining)
		}
	})
}

// TestRefundOfDamagedLogRemovesNothing refunds a charge of a log with a later invalid event.
func TestRefundOfDamagedLogRemovesNothing(t *testing.T) {
	eachRule(t, ratelimit.Block{}, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
		if r.Algorithm() != "log" {
			return
		}
		clock := freeze(s)
		key := keyOf(s, "k", r)
		charged := do(t, s, takeOf(r, "k", 1))[0].Receipt
		if r.Layout().Stream {
			aStream("1000000001000000-2", "n", "1")(c, key)
			aStream("1000000001500000-0", "m", "1")(c, key)
			aStream("1000000002000000-3", "n", "1")(c, key)
		} else {
			aSet("1000000001000000", "0000000000000002 1")(c, key)
			aSet("1000000001500000", "junk")(c, key)
			aSet("1000000002000000", "0000000000000003 1")(c, key)
		}
		clock.Advance(3 * time.Second)
		before := c.Dump(t.Context(), key).Val()
		_, err := s.DoOne(t.Context(), refundOf(r, "k", charged))
		require.ErrorIs(t, err, ErrKeyType)
		require.Equal(t, before, c.Dump(t.Context(), key).Val())
	})
}

// TestAddToADamagedTotal makes equal adds to a counter whose total is too large. All of them fail, and the script must not
// loop forever.
func TestAddToADamagedTotal(t *testing.T) {
	s, c, _ := frozen(t)
	r := lasting(ratelimit.Block{})["buckets"]
	do(t, s, takeOf(r, "k", 1))
	require.NoError(t, c.SetRange(t.Context(), keyOf(s, "k", r), 18, "\xff\xff\xff\xff\xff\xff\x20").Err())
	add := ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Add}
	_, errs := atOnce(t.Context(), s, add, add, add)
	for _, err := range errs {
		require.ErrorIs(t, err, ratelimit.ErrOverflow)
	}
}

// TestDamagedCountersFailOnlyTheirCallers changes random bytes of counters and random events of logs. Ops on other keys in
// the same call succeed.
func TestDamagedCountersFailOnlyTheirCallers(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	eachRule(t, ratelimit.Block{}, func(t *testing.T, s *Store, c *redis.Client, r ratelimit.Rule) {
		ops := allKinds(r, ratelimit.Receipt{})
		delete(ops, "reset")
		for range 150 {
			var charged ratelimit.Receipt
			do(t, s, opOf(ratelimit.Reset, r, "k", 0), takeOf(r, "k", 1))
			for range 2 {
				charged = do(t, s, takeOf(r, "k", 1))[0].Receipt
			}
			ops["refund"] = refundOf(r, "k", charged)
			ops["large add"] = ratelimit.Op{Rule: r, Key: "k", N: 1 << 53 / r.Per().Microseconds(), Kind: ratelimit.Add}
			junk := damage(t, c, keyOf(s, "k", r), r, random)
			for _, kind := range slices.Sorted(maps.Keys(ops)) {
				good := ratelimit.Op{Rule: r.WithLimit(1 << 16), Key: "good", N: 1, Kind: ratelimit.Take}
				bad := ops[kind]
				bad.Rule = good.Rule // so that takes share a script
				results, errs := atOnce(t.Context(), s, good, bad, ops[kind], good, bad)
				for i, err := range errs {
					require.GreaterOrEqual(t, results[i].Count, int64(0), "%s, call %d; %q", kind, i, junk)
					require.LessOrEqual(t, results[i].Remaining, int64(1<<16), "%s, call %d; %q", kind, i, junk)
					mayFail := i != 0 && i != 3
					if err != nil && (!mayFail || !errors.Is(err, ErrKeyType) && !errors.Is(err, ratelimit.ErrOverflow)) {
						t.Fatalf("%s, call %d: %v; %q", kind, i, err, junk)
					}
				}
			}
			c.Del(t.Context(), keyOf(s, "k", r), keyOf(s, "good", r))
		}
	})
}

// damage changes a random part of a counter with three units. It returns what it has written.
func damage(t *testing.T, c *redis.Client, key string, r ratelimit.Rule, random *rand.Rand) string {
	junk := make([]byte, 1+random.IntN(21))
	for i := range junk {
		switch random.IntN(2) {
		case 0:
			junk[i] = "0123456789 "[random.IntN(11)]
		default:
			junk[i] = byte(random.IntN(256)) >> random.IntN(8)
		}
	}
	switch algorithmOf(r.Layout()).name {
	case "log":
		at := c.ZRangeWithScores(t.Context(), key, 0, -1).Val()[random.IntN(3)]
		c.ZRem(t.Context(), key, at.Member)
		if random.IntN(2) == 0 {
			junk = append([]byte("0000000000000002 "), junk[0]%8+'0')
		}
		c.ZAdd(t.Context(), key, redis.Z{Score: at.Score * float64(1+random.IntN(2)), Member: string(junk)})
	case "stream":
		at := c.XRange(t.Context(), key, "-", "+").Val()[random.IntN(3)]
		c.XDel(t.Context(), key, at.ID)
		if random.IntN(2) == 0 {
			c.Do(t.Context(), "XADD", key, strings.Replace(at.ID, "-", "9-", random.IntN(2)), "n", string(junk))
		}
	default:
		length := c.StrLen(t.Context(), key).Val()
		junk = junk[:min(length, int64(len(junk)))]
		c.SetRange(t.Context(), key, random.Int64N(length-int64(len(junk))+1), string(junk))
	}
	return string(junk)
}

// TestWindowWithHexadecimalCount writes a window's units in a format that Lua reads as a number, but Redis does not. HINCRBY
// would fail after other keys were charged, so the script computes the sum itself.
func TestWindowWithHexadecimalCount(t *testing.T) {
	s, c, _ := frozen(t)
	r := lasting(ratelimit.Block{})["window"]
	ends := time.Now().Add(time.Minute).UnixMicro()
	require.NoError(t, c.HSet(t.Context(), keyOf(s, "k", r), "ends", ends, "n", "0x1").Err())
	op := takeOf(r, "k", 1)
	good := op
	good.Key = "good"
	do(t, s, good, op)
	require.EqualValues(t, 1, do(t, s, opOf(ratelimit.Count, r, "good", 0))[0].Count)
	require.Equal(t, "2", c.HGet(t.Context(), keyOf(s, "k", r), "n").Val())
}
