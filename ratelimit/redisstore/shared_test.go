package redisstore

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestStoresShareCounters has two clients with a store each, as two processes have.
func TestStoresShareCounters(t *testing.T) {
	server := testhost.StartRedis(t)
	a := newLimiter(t, newStore(t, server.Client(nil), patient), perMinute(3))
	b := newLimiter(t, newStore(t, server.Client(nil), patient), perMinute(3))
	elsewhere := newLimiter(t, newStore(t, server.Client(nil), Options{Prefix: "other:", Timeout: patient.Timeout}), perMinute(3))

	first, err := a.Take(t.Context(), "k", 2)
	require.NoError(t, err)
	res, err := b.Take(t.Context(), "k", 2)
	require.NoError(t, err)
	require.False(t, res.Allowed)
	require.EqualValues(t, 1, res.Remaining)
	require.Greater(t, res.RetryAfter, 55*time.Second)
	res, err = elsewhere.Take(t.Context(), "k", 2)
	require.NoError(t, err)
	require.True(t, res.Allowed)

	back, err := b.Refund(t.Context(), "k", first)
	require.NoError(t, err)
	require.True(t, back)
	res, err = a.Take(t.Context(), "k", 3)
	require.NoError(t, err)
	require.True(t, res.Allowed)
}

// TestNeverMoreThanTheLimit races takes of one rule and of two in one group.
func TestNeverMoreThanTheLimit(t *testing.T) {
	server := testhost.StartRedis(t)
	stores := []*Store{newStore(t, server.Client(nil), patient), newStore(t, server.Client(nil), patient)}
	low := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 100})
	high := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 130}).WithName("high")
	var passed [2]atomic.Int64 // of low, of high
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 10 {
				ops := []ratelimit.Op{{Rule: high, Key: "k", N: 1, Kind: ratelimit.Take}}
				if j%2 == 0 {
					ops = append(ops, ratelimit.Op{Rule: low, Key: "k", N: 1, Kind: ratelimit.Take})
				}
				results, err := stores[i%2].Do(t.Context(), ops)
				if err != nil {
					t.Error(err)
					return
				}
				if results[0].Allowed {
					passed[1].Add(1)
					passed[0].Add(int64(len(ops) - 1))
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 130, passed[1].Load())
	require.LessOrEqual(t, passed[0].Load(), int64(100))
	for i, r := range []ratelimit.Rule{low, high} {
		got := do(t, stores[0], ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Count})[0].Count
		require.Equal(t, passed[i].Load(), got, "a denied group charges nothing")
	}
}

func TestMadeUpReceipts(t *testing.T) {
	eachRule(t, ratelimit.Block{}, func(t *testing.T, s *Store, _ *redis.Client, r ratelimit.Rule) {
		good := do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 2, Kind: ratelimit.Take})[0].Receipt
		refused := func(key string, change func(*ratelimit.Receipt)) {
			t.Helper()
			bad := good
			change(&bad)
			res := do(t, s, ratelimit.Op{Rule: r, Key: key, Kind: ratelimit.Refund, Receipt: bad})[0]
			require.False(t, res.Allowed, "%+v", bad)
		}
		for _, change := range []func(*ratelimit.Receipt){
			func(c *ratelimit.Receipt) { *c = ratelimit.Receipt{} },
			func(c *ratelimit.Receipt) { c.Counter = 0 },
			func(c *ratelimit.Receipt) { c.Counter++ },
			func(c *ratelimit.Receipt) { c.N = -1 },
			func(c *ratelimit.Receipt) { c.N = 0 },
			func(c *ratelimit.Receipt) { c.N = 3 },
			func(c *ratelimit.Receipt) { c.N = 1 << 53 },
			func(c *ratelimit.Receipt) { c.N = 1 << 62 },
			func(c *ratelimit.Receipt) { c.At = -1 << 62 },
			func(c *ratelimit.Receipt) { c.At = 1 << 62 },
			func(c *ratelimit.Receipt) { c.At++ },
			func(c *ratelimit.Receipt) { c.At -= 200 },
			func(c *ratelimit.Receipt) { c.Generation = -1 },
			func(c *ratelimit.Receipt) { c.Generation = 1 << 62 },
		} {
			refused("k", change)
			refused("unknown", change)
		}
		if good.Generation > 0 { // the others know charges by their time alone
			refused("k", func(c *ratelimit.Receipt) { c.Generation++ })
		}
		require.EqualValues(t, 3, do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Peek})[0].Remaining)
		require.True(t, do(t, s, ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Refund, Receipt: good})[0].Allowed)
	})
}

// TestMadeUpReceiptsAtTheEdges has windows that begin before 1970, and the largest number of
// units.
func TestMadeUpReceiptsAtTheEdges(t *testing.T) {
	s := newStore(t, testhost.StartRedis(t).Client(nil), patient)
	log := ratelimit.SlidingLog(5, 90*365*24*time.Hour)
	for _, r := range []ratelimit.Rule{log, log.WithStream()} {
		for range 2 { // unknown, and with an event
			res := do(t, s, ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Refund})[0]
			require.False(t, res.Allowed, "%v", r)
			do(t, s, takeOf(r, "k", 1))
		}
	}
	for name, r := range lasting(ratelimit.Block{}) {
		if r.Algorithm() == "gcra" {
			continue
		}
		charged := do(t, s, ratelimit.Op{Rule: r, Key: "k", N: 1 << 53, Kind: ratelimit.Add})[0].Receipt
		charged.N++
		require.False(t, do(t, s, ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Refund, Receipt: charged})[0].Allowed, name)
	}
}

// TestLongRing has more buckets than one read returns.
func TestLongRing(t *testing.T) {
	s, clock := onRedis(t)
	l := newLimiter(t, s, ratelimit.BucketOptions{Limit: 1000, Interval: time.Second, Span: 1000 * time.Second})
	for range 1000 {
		_, err := l.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		clock.Advance(time.Second)
	}
	for _, n := range []int64{1, 2, 500, 1000} {
		res, err := l.Take(t.Context(), "k", n)
		require.NoError(t, err)
		require.False(t, res.Allowed)
		require.Equal(t, time.Duration(n)*time.Second, res.RetryAfter)
		require.Equal(t, 1000*time.Second, res.ResetAfter)
	}
}
