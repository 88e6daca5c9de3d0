package redisstore

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// callers run work until they are stopped or the test ends.
type callers struct {
	stop func()
	wg   sync.WaitGroup
}

func calling(t *testing.T, n int, work func()) *callers {
	stopped := make(chan struct{})
	c := &callers{stop: sync.OnceFunc(func() { close(stopped) })}
	t.Cleanup(c.end)
	for range n {
		c.wg.Go(func() {
			for {
				select {
				case <-stopped:
					return
				default:
					work()
				}
			}
		})
	}
	return c
}

// counted returns a count. A client that has just found the promoted replica may still close a
// connection that is in use.
func counted(t *testing.T, l *ratelimit.Limiter, key string) (n int64) {
	t.Helper()
	require.Eventually(t, func() (ok bool) {
		var err error
		n, err = l.Count(t.Context(), key, 0)
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	return n
}

func (c *callers) end() { c.stop(); c.wg.Wait() }

// TestSlotMigrationUnderLoad moves a subject's counters around the Cluster, and pauses while they are on two nodes.
// Calls for one counter, and for two counters in a group, must not fail.
func TestSlotMigrationUnderLoad(t *testing.T) {
	t.Parallel()
	c := testhost.StartCluster(t)
	s := newStore(t, c.Client(nil), patient)
	const limit = 300
	low := ratelimit.Buckets(ratelimit.BucketOptions{Limit: limit}).WithName("low")
	open := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1 << 40}).WithName("open")
	wide := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1 << 40}).WithName("wide")
	var lows, pairs atomic.Int64
	load := calling(t, 64, func() {
		one, err := s.DoOne(t.Context(), ratelimit.Op{Rule: low, Key: "k", N: 1, Kind: ratelimit.Take})
		if err != nil {
			t.Error(err)
		}
		two, err := s.Do(t.Context(), []ratelimit.Op{
			{Rule: open, Key: "k", N: 1, Kind: ratelimit.Take},
			{Rule: wide, Key: "k", N: 1, Kind: ratelimit.Take},
		})
		if err != nil {
			t.Error(err)
			return
		}
		if one.Allowed {
			lows.Add(1)
		}
		if two[0].Allowed && two[1].Allowed {
			pairs.Add(1)
		}
	})
	slot := c.Slot("{k}")
	for i := range 6 {
		before := pairs.Load()
		m := c.BeginMove(slot, c.Masters(slot)[1+i%2])
		m.MoveKeys(1 + i%3)
		<-time.After(20 * time.Millisecond)
		m.End()
		require.Eventually(t, func() bool { return pairs.Load() > before+64 }, 10*time.Second, time.Millisecond)
	}
	load.end()
	require.EqualValues(t, limit, lows.Load(), "no more than the limit, and no less")
	for _, r := range []ratelimit.Rule{open, wide} {
		n := do(t, s, ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Count})[0].Count
		require.Equal(t, pairs.Load(), n, "each was charged once")
	}
	t.Logf("%d charges of two counters", pairs.Load())
}

// TestMasterDeathUnderLoad checks that callers get a result or ErrStore, and that the
// promoted replica enforces the limit. Charges that were not replicated are lost, and that many
// more units can pass.
func TestMasterDeathUnderLoad(t *testing.T) {
	t.Parallel()
	c := testhost.StartCluster(t)
	const limit = 1 << 40
	l := newLimiter(t, newStore(t, c.Client(nil), Options{}), perMinute(limit))
	var acked, failed atomic.Int64
	load := calling(t, 16, func() {
		switch _, err := l.Take(t.Context(), "k", 1); {
		case err == nil:
			acked.Add(1)
		case errors.Is(err, ratelimit.ErrStore):
			failed.Add(1)
		default:
			t.Error(err)
		}
	})
	require.Eventually(t, func() bool { return acked.Load() > 1000 }, 10*time.Second, time.Millisecond)
	slot := c.Slot("{k}")
	c.WaitReplicated(slot)
	c.KillMaster(slot)
	before := acked.Load()
	require.Eventually(t, func() bool { return acked.Load() > before+1000 }, 20*time.Second, time.Millisecond)
	load.end()
	n := counted(t, l, "k")
	require.LessOrEqual(t, n, acked.Load()+failed.Load(), "nothing was charged twice")
	require.Greater(t, n, int64(1000), "the heir has what was told")
	require.NotZero(t, failed.Load())
}
