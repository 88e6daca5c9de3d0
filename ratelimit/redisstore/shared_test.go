package redisstore

import (
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
