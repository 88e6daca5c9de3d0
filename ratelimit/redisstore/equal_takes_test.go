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

// Concurrent equal takes are one entry of a script call, unless each is an event of a log.

// hourly returns rules with a limit of 10 whose quota does not refill during a test.
func hourly() map[string]ratelimit.Rule {
	return map[string]ratelimit.Rule{
		"buckets": ratelimit.Buckets(ratelimit.BucketOptions{Limit: 10, Interval: 5 * time.Minute, Span: time.Hour}),
		"log":     ratelimit.SlidingLog(10, time.Hour),
		"stream":  ratelimit.SlidingLog(10, time.Hour).WithStream(),
		"window":  ratelimit.FixedWindow(10, time.Hour),
		"gcra":    ratelimit.GCRA(10, time.Hour),
	}
}

// TestEqualTakesMatchSequentialTakes compares equal takes in one entry with sequential takes.
func TestEqualTakesMatchSequentialTakes(t *testing.T) {
	s, clock := onRedis(t)
	for name, r := range hourly() {
		for i, c := range []struct {
			used, n int64
			times   int
		}{{0, 1, 64}, {0, 3, 64}, {0, 4, 2}, {2, 2, 4}, {2, 2, 5}, {7, 4, 3}, {10, 1, 3}, {13, 1, 3}, {9, 1, 1}} {
			joined, single := takeOf(r, fmt.Sprint("joined", name, i), c.n), takeOf(r, fmt.Sprint("single", name, i), c.n)
			if c.used > 0 { // some time before
				do(t, s, ratelimit.Op{Rule: r, Key: joined.Key, N: c.used, Kind: ratelimit.Add}, ratelimit.Op{Rule: r, Key: single.Key, N: c.used, Kind: ratelimit.Add})
				clock.Advance(7 * time.Minute)
			}
			got, errs := atOnce(t.Context(), s, slices.Repeat([]ratelimit.Op{joined}, c.times)...)
			for i := range got {
				require.NoError(t, errs[i])
				want, err := s.DoOne(t.Context(), single)
				require.NoError(t, err)
				want.Receipt.Counter, got[i].Receipt.Counter = 0, 0 // of different keys
				require.Equal(t, want, got[i], "%s, %v: take %d", name, c, i)
			}
		}
	}
}

// TestEqualTakesAreOneEntry counts the entries that are sent to Redis.
func TestEqualTakesAreOneEntry(t *testing.T) {
	server := testhost.StartRedis(t)
	c := server.Client(nil)
	s := newStore(t, c, Options{Timeout: patient.Timeout, BatchSize: 1})
	for name, want := range map[string]int{"buckets": 2, "window": 2, "gcra": 2, "log": 64, "stream": 64} {
		r := hourly()[name]
		do(t, s, takeOf(r, "known", 1))
		before, _ := server.Calls("evalsha")
		ops := append(slices.Repeat([]ratelimit.Op{takeOf(r, "k", 1)}, 63), takeOf(r, "k", 2))
		_, errs := atOnce(t.Context(), s, ops...)
		require.Equal(t, make([]error, 64), errs)
		after, _ := server.Calls("evalsha")
		require.Equal(t, before+want, after, name)
	}
}

// TestConcurrentTakesReachTheLimit has 64 concurrent callers for 10 units, while others take from other keys, by
// other rules and in groups.
func TestConcurrentTakesReachTheLimit(t *testing.T) {
	t.Parallel()
	s := newStore(t, testhost.StartRedis(t).Client(nil), patient)
	other := calling(t, 2, func() {
		ops := manyTakes(limited(1<<40), 3)
		ops = append(ops, ratelimit.Op{Rule: limited(1 << 40), Key: "many0", N: 1, Kind: ratelimit.Peek}, takeOf(hourly()["buckets"], "others", 1))
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
			t.Fatalf("%s: denied by %+v", key, res)
		}
	}
	slices.SortFunc(passed, func(a, b ratelimit.Result) int { return int(b.Remaining - a.Remaining) })
	require.Equal(t, []int64{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, remains(passed), key)
	refunds := make([]ratelimit.Op, 10)
	for i, res := range passed {
		refunds[i] = ratelimit.Op{Rule: r, Key: key, Kind: ratelimit.Refund, Receipt: res.Receipt}
	}
	back, errs := atOnce(t.Context(), s, refunds...)
	for i, res := range back { // the first that came is the first to be given back
		require.NoError(t, errs[i])
		require.Equal(t, r.Algorithm() != "gcra" || i == 9, res.Allowed, "%s: take %d", key, i)
	}
}
