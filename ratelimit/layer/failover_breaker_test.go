package layer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// underLoad runs callers that take in a loop until stop returns true.
func (f *failoverTest) underLoad(callers int, stop func() bool) {
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for !stop() {
				if res, _, err := f.take(windowOf(1<<40), fmt.Sprint("caller", i), 1); err != nil || !res.Allowed {
					f.Errorf("%+v, %v", res, err)
				}
			}
		})
	}
	wg.Wait()
}

// during returns a function that reports whether d has passed.
func during(d time.Duration) (stop func() bool) {
	end := time.Now().Add(d)
	return func() bool { return !time.Now().Before(end) }
}

func (f *failoverTest) isDown() bool { return f.Stats().Down }

// works makes the store succeed after 5 ms.
func works(context.Context) error { <-time.After(5 * time.Millisecond); return nil }

// TestBreakerOpensUnderLoad checks how soon the breaker opens if the store hangs after thousands of successful calls.
func TestBreakerOpensUnderLoad(t *testing.T) {
	for _, c := range []struct {
		callers int
		most    int           // the maximum number of calls
		within  time.Duration // the time until the breaker opens
	}{
		{1, 10, 10 * 50 * time.Millisecond},
		{64, 64 + 10, 50 * time.Millisecond}, // ten callers may begin a second call before the breaker opens
	} {
		withFailover(t, FailoverOptions{Mode: Open}, func(t *testing.T, f *failoverTest) {
			f.store.setFailure(works)
			f.underLoad(c.callers, during(2*time.Second))
			require.Zero(t, f.Stats().Failed)

			f.store.setFailure(waitsForContext)
			began := time.Now()
			stop := during(2 * time.Second)
			var downAfter atomic.Int64
			f.underLoad(c.callers, func() bool {
				if f.isDown() {
					downAfter.CompareAndSwap(0, int64(time.Since(began)))
				}
				return stop() || downAfter.Load() > 0
			})
			require.LessOrEqual(t, f.store.takeCalls(), c.most)
			require.Equal(t, c.within, time.Duration(downAfter.Load()))
			synctest.Wait()
			require.Contains(t, f.log.String(), "consecutive_failures=10")
		})
	}
}

// TestBreakerOpensWithALongTimeout checks that the breaker opens if each failed call takes longer than a second.
func TestBreakerOpensWithALongTimeout(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Open, Timeout: 3 * time.Second}, func(t *testing.T, f *failoverTest) {
		f.store.setFailure(waitsForContext)
		stop := during(3 * f.o.Timeout)
		f.underLoad(64, func() bool { return stop() || f.isDown() })
		require.True(t, f.isDown())
		require.LessOrEqual(t, f.store.takeCalls(), 2*64)
	})
}

// TestBreakerStaysClosedIfAPartHangs checks that the breaker stays closed while a third of the calls hang, as if one
// node of a Cluster hung. Soon nearly all callers wait in hanging calls, so failures come in long runs.
func TestBreakerStaysClosedIfAPartHangs(t *testing.T) {
	withFailover(t, FailoverOptions{Mode: Open}, func(t *testing.T, f *failoverTest) {
		var calls atomic.Int64
		f.store.setFailure(func(ctx context.Context) error {
			if calls.Add(1)%3 == 0 {
				return waitsForContext(ctx)
			}
			return works(ctx)
		})
		stop := during(5 * time.Second)
		f.underLoad(64, func() bool { return stop() || f.isDown() })
		require.Zero(t, f.Stats().Outages)
		require.Greater(t, f.Stats().Failed, int64(1000))
	})
}

// TestConsecutiveFailures checks that ten failures in sequence open the breaker, although the share of failures does
// not reach Ratio.
func TestConsecutiveFailures(t *testing.T) {
	take := func(f *failoverTest, store func(context.Context) error, times int) {
		f.store.setFailure(store)
		for range times {
			res, _, err := f.take(gcra(100), "k", 1)
			require.NoError(f, err)
			require.True(f, res.Allowed)
		}
	}
	withFailover(t, FailoverOptions{Mode: Open, Ratio: 1}, func(t *testing.T, f *failoverTest) {
		for range 10 {
			take(f, waitsForContext, maxConsecutive-1)
			take(f, works, 1)
		}
		take(f, fails, 2*maxConsecutive)
		require.False(t, f.isDown(), "the store answered just now")
		<-time.After(f.o.Timeout)
		take(f, fails, 1)
		require.True(t, f.isDown())
		f.back()
		take(f, works, 1)
		take(f, waitsForContext, maxConsecutive-1)
		require.False(t, f.isDown(), "failures before the store was back don't count")
		take(f, waitsForContext, 1)
		require.True(t, f.isDown())
	})
}
