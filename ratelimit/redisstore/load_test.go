package redisstore

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/faultproxy"
	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// callers are goroutines that call a function again and again until they are stopped or the test ends.
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

func (c *callers) end() { c.stop(); c.wg.Wait() }

// takers are goroutines that take from the key "k". Each take must get a result or ErrStore.
type takers struct {
	*callers
	acked, failed atomic.Int64
}

func taking(t *testing.T, n int, l *ratelimit.Limiter) *takers {
	load := new(takers)
	load.callers = calling(t, n, func() {
		switch _, err := l.Take(t.Context(), "k", 1); {
		case err == nil:
			load.acked.Add(1)
		case errors.Is(err, ratelimit.ErrStore):
			load.failed.Add(1)
		default:
			t.Error(err)
		}
	})
	return load
}

// waitForMore waits until n more takes have got a result.
func (load *takers) waitForMore(t *testing.T, n int64) {
	t.Helper()
	before := load.acked.Load()
	require.Eventually(t, func() bool { return load.acked.Load() > before+n }, 20*time.Second, time.Millisecond)
}

// counted returns the count of "k". It repeats failed calls, because a client that finds a new master may still close
// connections that are in use.
func counted(t *testing.T, l *ratelimit.Limiter) (n int64) {
	t.Helper()
	require.Eventually(t, func() (ok bool) {
		var err error
		n, err = l.Count(t.Context(), "k", 0)
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	return n
}

// TestFaultsNeverChargeTwice makes takes while Redis and its connections fail in all kinds of ways.
func TestFaultsNeverChargeTwice(t *testing.T) {
	t.Parallel()
	server := testhost.StartRedis(t)
	direct := newLimiter(t, newStore(t, server.Client(nil), patient), perMinute(1<<40))
	client, proxy := faultproxy.NewClient(t, server)
	l := newLimiter(t, newStore(t, client, Options{Timeout: 50 * time.Millisecond}), perMinute(1<<40))
	load := taking(t, 32, l)
	faults := []func(){
		proxy.Cut, proxy.Reset, proxy.Stall,
		func() { proxy.CutAfter(rand.IntN(2000)) },
		func() { proxy.ResetAfter(rand.IntN(2000)) },
		func() { proxy.Delay(20*time.Millisecond, 80*time.Millisecond) },
		func() { defer server.Pause()(); <-time.After(60 * time.Millisecond) },
	}
	late := 0
	for i := range 4 * len(faults) {
		faults[i%len(faults)]()
		<-time.After(time.Duration(rand.IntN(70)) * time.Millisecond)
		require.NoError(t, proxy.Restore())
		began := time.Now()
		load.waitForMore(t, 0)
		if time.Since(began) > time.Second { // the machine may be busy
			late++
		}
	}
	load.end()
	require.Less(t, late, len(faults), "most recoveries take less than a second")
	n := counted(t, direct)
	require.GreaterOrEqual(t, n, load.acked.Load())
	require.LessOrEqual(t, n, load.acked.Load()+load.failed.Load())
	require.NotZero(t, load.failed.Load())
}

// TestSilentRedisTimesOut checks the deadlines of calls with one op and with several.
func TestSilentRedisTimesOut(t *testing.T) {
	t.Parallel()
	const timeout = 80 * time.Millisecond
	server := testhost.StartRedis(t)
	s := newStore(t, server.Client(nil), Options{Timeout: timeout})
	r := hourlyWindow(1000)
	resume := server.Pause()
	defer resume()
	for _, ops := range [][]ratelimit.Op{{takeOf(r, "a", 1)}, {takeOf(r, "a", 1), takeOf(r, "b", 1)}, {opOf(ratelimit.Reset, r, "a", 0)}} {
		best := time.Hour // the machine may be busy
		for i := 0; i < 10 && best > timeout+50*time.Millisecond; i++ {
			began := time.Now()
			var err error
			if len(ops) == 1 {
				_, err = s.DoOne(t.Context(), ops[0])
			} else {
				_, err = s.Do(t.Context(), ops)
			}
			require.ErrorIs(t, err, ratelimit.ErrStore)
			require.GreaterOrEqual(t, time.Since(began), timeout)
			best = min(best, time.Since(began))
		}
		require.LessOrEqual(t, best, timeout+50*time.Millisecond)
	}
}

// TestRedisCrash restarts a Redis that keeps its data, and one that loses its data and scripts.
func TestRedisCrash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want int64
	}{{testhost.Durable, 3}, {nil, 0}} {
		server := testhost.StartRedis(t, tt.args...)
		l := newLimiter(t, newStore(t, server.Client(nil), patient), perMinute(1000))
		_, err := l.Take(t.Context(), "k", 3)
		require.NoError(t, err)
		server.Kill()
		_, err = l.Take(t.Context(), "k", 1)
		require.ErrorIs(t, err, ratelimit.ErrStore)
		server.Restart()
		require.Eventually(t, func() bool {
			n, err := l.Count(t.Context(), "k", 0)
			return err == nil && n == tt.want
		}, time.Second, 10*time.Millisecond)
	}
}

// TestSlotMigrationUnderLoad moves a subject's counters to another node of the Cluster, and pauses while the counters
// are on two nodes. Calls for one counter, and for two counters in a group, must not fail.
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
		one, err := s.DoOne(t.Context(), takeOf(low, "k", 1))
		if err != nil {
			t.Error(err)
		}
		two, err := s.Do(t.Context(), []ratelimit.Op{opOf(ratelimit.Take, open, "k", 1), opOf(ratelimit.Take, wide, "k", 1)})
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
	require.EqualValues(t, limit, lows.Load())
	for _, r := range []ratelimit.Rule{open, wide} {
		require.Equal(t, pairs.Load(), do(t, s, opOf(ratelimit.Count, r, "k", 0))[0].Count)
	}
}
