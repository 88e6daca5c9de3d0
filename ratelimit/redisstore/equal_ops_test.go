package redisstore

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testenv"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// hourly returns rules with a limit of 10 whose quota does not refill during a test.
func hourly() map[string]ratelimit.Rule {
	return map[string]ratelimit.Rule{
		"buckets":  ratelimit.Buckets(ratelimit.BucketOptions{Limit: 10, Interval: 5 * time.Minute, Span: time.Hour}),
		"log":      ratelimit.SlidingLog(10, time.Hour),
		"stream":   ratelimit.SlidingLog(10, time.Hour).WithStream(),
		"window":   ratelimit.FixedWindow(10, time.Hour),
		"calendar": ratelimit.Calendar(10, ratelimit.Month, time.UTC),
		"gcra":     ratelimit.GCRA(10, time.Hour),
	}
}

// TestEqualOpsAreOneEntry checks how many entries of script calls Redis gets for 64 equal ops, and the count that each
// of them returns. Each charge of a log is an entry, and so is each add with a limit.
func TestEqualOpsAreOneEntry(t *testing.T) {
	server := testhost.StartRedis(t)
	s := newStore(t, server.Client(nil), Options{Timeout: patient.Timeout, BatchSize: 1})
	for _, tt := range []struct {
		rule    ratelimit.Rule
		kind    ratelimit.Kind
		n       int64
		entries int
	}{
		{hourly()["buckets"], ratelimit.Take, 1, 1},
		{hourly()["window"], ratelimit.Take, 1, 1},
		{hourly()["gcra"], ratelimit.Take, 1, 1},
		{hourly()["log"], ratelimit.Take, 1, 64},
		{hourly()["stream"], ratelimit.Take, 1, 64},
		{counting, ratelimit.Add, 2, 1},
		{counting, ratelimit.Add, 0, 1},
		{hourly()["log"].WithoutLimit(), ratelimit.Add, 2, 64},
		{hourly()["buckets"], ratelimit.Add, 2, 64},
		{hourly()["window"], ratelimit.Add, 2, 64},
	} {
		key := fmt.Sprint(tt)
		do(t, s, opOf(tt.kind, tt.rule, "known", tt.n), opOf(ratelimit.Reset, tt.rule, key, 0))
		before, _ := server.Calls("evalsha")
		results, errs := atOnce(t.Context(), s, slices.Repeat([]ratelimit.Op{opOf(tt.kind, tt.rule, key, tt.n)}, 64)...)
		after, _ := server.Calls("evalsha")
		require.Equal(t, make([]error, 64), errs, key)
		require.Equal(t, tt.entries, after-before, key)
		if tt.kind != ratelimit.Add {
			continue
		}
		for i, res := range results {
			require.True(t, res.Allowed, key)
			require.Equal(t, int64(i+1)*tt.n, res.Count, key)
		}
		if tt.n > 0 {
			require.True(t, do(t, s, refundOf(tt.rule, key, results[7].Receipt))[0].Allowed, key)
			require.EqualValues(t, 126, do(t, s, opOf(ratelimit.Count, tt.rule, key, 0))[0].Count, key)
		}
	}
}

// TestOverflowFailsOnlyItsOwnAdds makes five adds to a counter that has room for three of them, and adds to other
// counters in the same call.
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

// TestConcurrentTakesReachTheLimit lets 64 goroutines take from a key with a quota of 10 units. Meanwhile, other
// goroutines use other keys and rules.
func TestConcurrentTakesReachTheLimit(t *testing.T) {
	t.Parallel()
	s := newStore(t, testhost.StartRedis(t).Client(nil), patient)
	other := calling(t, 2, func() {
		ops := append(onManyKeys(ratelimit.Take, hourlyWindow(1<<40), 3), opOf(ratelimit.Peek, hourlyWindow(1<<40), "many0", 1), takeOf(hourly()["buckets"], "others", 1))
		if _, err := s.Do(t.Context(), ops); err != nil {
			t.Error(err)
		}
	})
	for name, r := range hourly() {
		rounds := testenv.Count(250, 10_000)
		if testenv.Racing {
			rounds = 50
		}
		if r.Algorithm() == "log" {
			rounds = 20
		}
		for i := range rounds {
			tenOf64(t, s, r, fmt.Sprint(name, i))
		}
	}
	other.end()
}

// tenOf64 checks that exactly 10 of 64 concurrent takes pass, each with a different remaining quota, and that they can be
// refunded. Only the last charge of a GCRA can be refunded.
func tenOf64(t *testing.T, s *Store, r ratelimit.Rule, key string) {
	t.Helper()
	var results [64]ratelimit.Result
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range results {
		wg.Go(func() {
			var err error
			<-start
			if results[i], err = s.DoOne(t.Context(), takeOf(r, key, 1)); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
	var passed []ratelimit.Result
	for _, res := range results {
		switch {
		case res.Allowed:
			passed = append(passed, res)
		case !res.Violated || res.Remaining != 0 || res.RetryAfter <= 0:
			t.Fatalf("%s: denied with %+v", key, res)
		}
	}
	slices.SortFunc(passed, func(a, b ratelimit.Result) int { return int(b.Remaining - a.Remaining) })
	require.Equal(t, []int64{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, remains(passed), key)
	refunds := make([]ratelimit.Op, 10)
	for i, res := range passed {
		refunds[i] = refundOf(r, key, res.Receipt)
	}
	back, errs := atOnce(t.Context(), s, refunds...)
	for i, res := range back {
		require.NoError(t, errs[i])
		require.Equal(t, r.Algorithm() != "gcra" || i == 9, res.Allowed, "%s: take %d", key, i)
	}
}
