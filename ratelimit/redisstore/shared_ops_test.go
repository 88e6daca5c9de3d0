package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// counting is a rule that only counts, as a bucket counter does.
var counting = ratelimit.Buckets(ratelimit.BucketOptions{})

func opOf(kind ratelimit.Kind, r ratelimit.Rule, key string, n int64) ratelimit.Op {
	return ratelimit.Op{Rule: r, Key: key, N: n, Kind: kind}
}

// TestEveryKindSharesCommand counts commands. Ops of the same kind with the same rule, and the same interval if they
// count, share a command for all their keys.
func TestEveryKindSharesCommand(t *testing.T) {
	server := testhost.StartRedis(t)
	s := newStore(t, server.Client(nil), patient)
	for name, r := range lasting(ratelimit.Block{}) {
		for _, kind := range []ratelimit.Kind{ratelimit.Peek, ratelimit.Add, ratelimit.Count} {
			if kind == ratelimit.Count && name == "gcra" {
				continue
			}
			var ops []ratelimit.Op
			for i := range 50 {
				ops = append(ops, opOf(kind, r, fmt.Sprint("k", i), 1))
			}
			n, _ := commands(t, server, s, ops...)
			require.Equal(t, 1, n, "%s: %v", name, kind)
		}
	}
	short, long := opOf(ratelimit.Count, counting, "a", 0), opOf(ratelimit.Count, counting, "b", 0)
	short.Interval, long.Interval = 20*time.Second, 595*time.Second
	n, _ := commands(t, server, s, short, long)
	require.Equal(t, 2, n, "two intervals")
}

// TestEqualAddsCountOneAfterAnother has 64 equal adds in one entry. Each gets its own count, and its
// charge can be refunded.
func TestEqualAddsCountOneAfterAnother(t *testing.T) {
	server := testhost.StartRedis(t)
	s := newStore(t, server.Client(nil), Options{Timeout: patient.Timeout, BatchSize: 1})
	for name, tt := range map[string]struct {
		rule    ratelimit.Rule
		entries int
	}{
		"counter":            {counting, 1},
		"log":                {hourly()["log"].WithoutLimit(), 64},
		"buckets, limit":     {hourly()["buckets"], 64},
		"window, limit":      {hourly()["window"], 64},
		"buckets, no charge": {counting, 1},
	} {
		n, counts := int64(2), []int64{}
		if name == "buckets, no charge" {
			n = 0
		}
		do(t, s, opOf(ratelimit.Add, tt.rule, "known", n))
		before, _ := server.Calls("evalsha")
		results, errs := atOnce(t.Context(), s, slices.Repeat([]ratelimit.Op{opOf(ratelimit.Add, tt.rule, name, n)}, 64)...)
		after, _ := server.Calls("evalsha")
		require.Equal(t, make([]error, 64), errs, name)
		require.Equal(t, tt.entries, after-before, name)
		for i, res := range results {
			require.True(t, res.Allowed, name)
			counts = append(counts, res.Count-int64(i+1)*n)
		}
		require.Equal(t, make([]int64, 64), counts, "%s: how much each count differs", name)
		if n > 0 {
			back := do(t, s, ratelimit.Op{Rule: tt.rule, Key: name, Kind: ratelimit.Refund, Receipt: results[7].Receipt})
			require.True(t, back[0].Allowed, name)
			require.EqualValues(t, 126, do(t, s, opOf(ratelimit.Count, tt.rule, name, 0))[0].Count, name)
		}
	}
}

// TestOverflowFailsOnlyItsOwnAdds has a counter with room for three of five adds, between counters with
// room for all.
func TestOverflowFailsOnlyItsOwnAdds(t *testing.T) {
	s := newStore(t, testhost.StartRedis(t).Client(nil), patient)
	for _, r := range []ratelimit.Rule{counting, ratelimit.SlidingLog(1<<53, time.Hour).WithoutLimit(), ratelimit.FixedWindow(1<<53, time.Hour)} {
		do(t, s, opOf(ratelimit.Add, r, "full", 1<<53-3))
		var ops []ratelimit.Op
		for range 5 {
			for _, key := range []string{"a", "full", "b"} {
				ops = append(ops, opOf(ratelimit.Add, r, key, 1))
			}
		}
		results, errs := atOnce(t.Context(), s, ops...)
		for i, op := range ops {
			if op.Key == "full" && i/3 >= 3 {
				require.ErrorIs(t, errs[i], ratelimit.ErrOverflow, "%v: %d", r, i)
				continue
			}
			require.NoError(t, errs[i], "%v: %d", r, i)
			want := int64(i/3 + 1)
			if op.Key == "full" {
				want += 1<<53 - 3
			}
			require.Equal(t, want, results[i].Count, "%v: %d", r, i)
		}
	}
}

// TestIntervalsAreBounded counts over far more intervals than the store keeps arguments for.
func TestIntervalsAreBounded(t *testing.T) {
	s := newStore(t, testhost.StartRedis(t).Client(nil), patient)
	do(t, s, opOf(ratelimit.Add, counting, "k", 3))
	for i := range 2*maxRules + 7 {
		op := opOf(ratelimit.Count, counting, "k", 0)
		op.Interval = 100*time.Second + time.Duration(i)*time.Microsecond
		require.EqualValues(t, 3, do(t, s, op)[0].Count)
		require.LessOrEqual(t, len(s.rules.args), maxRules)
	}
}

// TestRulesOfOneKeyShareATrip peeks at two rules of the same key and adds to them. These are two commands in one
// round trip. Ops on the same counter stay in order.
func TestRulesOfOneKeyShareATrip(t *testing.T) {
	s := newStore(t, testhost.StartRedis(t).Client(nil), patient)
	second, hour := ratelimit.FixedWindow(10, time.Second), ratelimit.FixedWindow(20, time.Hour)
	tripsOf := func(ops ...ratelimit.Op) int {
		return len(s.trips(ops, make([]ratelimit.Result, len(ops))))
	}
	for kind := ratelimit.Take; kind <= ratelimit.Reset; kind++ {
		require.Equal(t, 1, tripsOf(opOf(kind, second, "k", 1), opOf(kind, hour, "k", 1)), kind)
	}
	ops := []ratelimit.Op{
		opOf(ratelimit.Add, hour, "k", 3), opOf(ratelimit.Add, second, "k", 3), opOf(ratelimit.Count, hour, "k", 0),
		opOf(ratelimit.Reset, hour, "k", 0), opOf(ratelimit.Count, hour, "k", 0), opOf(ratelimit.Count, second, "k", 0),
	}
	require.Equal(t, 4, tripsOf(ops...))
	results := do(t, s, ops...)
	require.EqualValues(t, 3, results[2].Count)
	require.Zero(t, results[4].Count)
	require.EqualValues(t, 3, results[5].Count)
	require.Equal(t, 1, tripsOf(), "no ops")
}
