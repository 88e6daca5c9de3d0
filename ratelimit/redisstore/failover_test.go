package redisstore

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// TestMasterDeathUnderLoad kills a master of a Cluster. Charges that were not replicated are lost, but nothing is
// charged twice.
func TestMasterDeathUnderLoad(t *testing.T) {
	t.Parallel()
	c := testhost.StartCluster(t)
	l := newLimiter(t, newStore(t, c.Client(nil), Options{}), perMinute(1<<40))
	load := taking(t, 16, l)
	load.waitForMore(t, 1000)
	slot := c.Slot("{k}")
	c.WaitReplicated(slot)
	c.KillMaster(slot)
	load.waitForMore(t, 1000)
	load.end()
	n := counted(t, l)
	require.LessOrEqual(t, n, load.acked.Load()+load.failed.Load())
	require.Greater(t, n, int64(1000), "the new master has the replicated charges")
	require.NotZero(t, load.failed.Load())
}

// TestFailoverUnderLoad checks that takes fail with ErrStore, if at all, that they work again soon after the failover,
// and that no more than the limit passes on both masters together.
func TestFailoverUnderLoad(t *testing.T) {
	for name, fail := range map[string]func(*testhost.Sentinel){
		"in good order": (*testhost.Sentinel).Failover,
		"by a crash":    (*testhost.Sentinel).KillMaster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testhost.StartSentinel(t)
			store := newStore(t, s.Client(nil), Options{})
			open, low := newLimiter(t, store, perMinute(1<<40)), newLimiter(t, store, perMinute(100))
			load := taking(t, 16, open)
			var passed, passedAfter atomic.Int64
			var after atomic.Bool
			lows := calling(t, 4, func() {
				late := after.Load()
				if res, err := low.Take(t.Context(), "low", 1); err == nil && res.Allowed {
					passed.Add(1)
					if late {
						passedAfter.Add(1)
					}
				}
			})
			load.waitForMore(t, 1000)
			require.Eventually(t, func() bool { return passed.Load() == 100 }, 10*time.Second, time.Millisecond)
			s.WaitReplicated()
			fail(s)
			after.Store(true)
			load.waitForMore(t, 1000)
			load.end()
			lows.end()
			require.Zero(t, passedAfter.Load(), "the replica had all charges")
			require.LessOrEqual(t, counted(t, open), load.acked.Load()+load.failed.Load())
		})
	}
}

// TestFailoverLosesUnreplicatedCharges checks that only units whose charges never reached the replica can pass again.
func TestFailoverLosesUnreplicatedCharges(t *testing.T) {
	t.Parallel()
	s := testhost.StartSentinel(t, testhost.Durable...)
	takes := func(n, times int64) (passed int64) {
		l := newLimiter(t, newStore(t, s.Client(nil), patient), perMinute(10))
		for range times {
			res, err := l.Take(t.Context(), "k", n)
			require.NoError(t, err)
			if res.Allowed {
				passed += n
			}
		}
		return passed
	}
	require.EqualValues(t, 6, takes(6, 1))
	s.LoseWrites(func() { require.EqualValues(t, 4, takes(1, 11)) })
	require.EqualValues(t, 4, takes(1, 11))
}
