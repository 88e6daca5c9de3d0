package redisstore

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// lasting returns rules of 5 in at least a minute, with a block or without.
func lasting(block ratelimit.Block) map[string]ratelimit.Rule {
	return map[string]ratelimit.Rule{
		"buckets":  ratelimit.Buckets(perMinute(5)).WithBlock(block),
		"log":      ratelimit.SlidingLog(5, time.Minute).WithBlock(block),
		"stream":   ratelimit.SlidingLog(5, time.Minute).WithStream().WithBlock(block),
		"window":   ratelimit.FixedWindow(5, time.Minute).WithBlock(block),
		"calendar": ratelimit.Calendar(5, ratelimit.Month, time.UTC).WithBlock(block),
		"gcra":     ratelimit.GCRA(5, time.Minute).WithBlock(block),
	}
}

// eachRule runs a test as a subtest for each rule of lasting. All subtests use the same Redis, which is emptied before
// each of them.
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

// allKinds returns ops by name for a counter that has a limit of 5 and 1 used unit. It leaves out the count of a GCRA.
func allKinds(r ratelimit.Rule, charged ratelimit.Receipt) map[string]ratelimit.Op {
	ops := map[string]ratelimit.Op{
		"take":   opOf(ratelimit.Take, r, "k", 1),
		"denied": opOf(ratelimit.Take, r, "k", 5),
		"peek":   opOf(ratelimit.Peek, r, "k", 1),
		"add":    opOf(ratelimit.Add, r, "k", 1),
		"count":  opOf(ratelimit.Count, r, "k", 0),
		"refund": refundOf(r, "k", charged),
		"reset":  opOf(ratelimit.Reset, r, "k", 0),
	}
	if r.Algorithm() == "gcra" {
		delete(ops, "count")
	}
	return ops
}

func TestEveryKindIsOneCall(t *testing.T) {
	server := testhost.StartRedis(t)
	s := newStore(t, server.Client(nil), patient)
	for _, block := range []ratelimit.Block{{}, {After: 2, For: time.Minute}} {
		for name, r := range lasting(block) {
			charged := do(t, s, takeOf(r, "k", 1))[0].Receipt
			for kind, op := range allKinds(r, charged) {
				before, _ := server.Calls("evalsha")
				do(t, s, op)
				after, _ := server.Calls("evalsha")
				require.Equal(t, before+1, after, "%s: %s", name, kind)
			}
		}
	}
	evals, _ := server.Calls("eval")
	scripts := 4*len(algorithms) - 1 + len(theScripts.group) - 1 // without the count of a GCRA and the mixed group
	require.Equal(t, scripts, evals, "each script is loaded once")
}

func TestMadeUpReceipts(t *testing.T) {
	eachRule(t, ratelimit.Block{}, func(t *testing.T, s *Store, _ *redis.Client, r ratelimit.Rule) {
		good := do(t, s, takeOf(r, "k", 2))[0].Receipt
		refused := func(key string, change func(*ratelimit.Receipt)) {
			t.Helper()
			bad := good
			change(&bad)
			require.False(t, do(t, s, refundOf(r, key, bad))[0].Allowed, "%+v", bad)
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
		if good.Generation > 0 { // logs and windows identify a charge only by its time
			refused("k", func(c *ratelimit.Receipt) { c.Generation++ })
		}
		require.EqualValues(t, 3, do(t, s, opOf(ratelimit.Peek, r, "k", 1))[0].Remaining)
		require.True(t, do(t, s, refundOf(r, "k", good))[0].Allowed)
		if r.Algorithm() != "gcra" {
			largest := do(t, s, opOf(ratelimit.Add, r, "k", 1<<53))[0].Receipt
			largest.N++
			require.False(t, do(t, s, refundOf(r, "k", largest))[0].Allowed)
		}
	})
}

// TestRefundOfNothingBefore1970 refunds empty receipts to logs whose window begins before 1970.
func TestRefundOfNothingBefore1970(t *testing.T) {
	s := newStore(t, testhost.StartRedis(t).Client(nil), patient)
	log := ratelimit.SlidingLog(5, 90*365*24*time.Hour)
	for _, r := range []ratelimit.Rule{log, log.WithStream()} {
		for range 2 { // without events, and with an event
			require.False(t, do(t, s, refundOf(r, "k", ratelimit.Receipt{}))[0].Allowed, "%v", r)
			do(t, s, takeOf(r, "k", 1))
		}
	}
}
