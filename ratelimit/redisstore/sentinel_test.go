package redisstore

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestFailoverUnderLoad checks that takes fail with ErrStore, if at all, work again
// soon after, and never exceed the limit on either master.
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
			var acked, failed, passed, passedAfter atomic.Int64
			var after atomic.Bool
			load := calling(t, 16, func() {
				_, err := open.Take(t.Context(), "open", 1)
				switch {
				case err == nil:
					acked.Add(1)
				case errors.Is(err, ratelimit.ErrStore):
					failed.Add(1)
				default:
					t.Error(err)
				}
				late := after.Load()
				if res, err := low.Take(t.Context(), "low", 1); err == nil && res.Allowed {
					passed.Add(1)
					if late {
						passedAfter.Add(1)
					}
				}
			})
			require.Eventually(t, func() bool { return acked.Load() > 1000 && passed.Load() == 100 }, 10*time.Second, time.Millisecond)
			s.WaitReplicated()
			before := passed.Load()
			fail(s)
			after.Store(true)
			promoted := acked.Load()
			require.Eventually(t, func() bool { return acked.Load() > promoted+1000 }, 20*time.Second, time.Millisecond)
			load.end()
			require.LessOrEqual(t, before, int64(100))
			require.Zero(t, passedAfter.Load(), "the replica had them all")
			require.LessOrEqual(t, counted(t, open, "open"), acked.Load()+failed.Load(), "nothing was charged twice")
			require.LessOrEqual(t, counted(t, low, "low"), int64(100))
			t.Logf("%d acknowledged, %d failed; of 100, %d passed", acked.Load(), failed.Load(), passed.Load())
		})
	}
}

// TestFailoverLosesUnreplicatedCharges measures how much more than the limit can
// pass: the units whose charge never reached the replica.
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
	require.EqualValues(t, 4, takes(1, 11), "what was lost passes again, no more")
}
