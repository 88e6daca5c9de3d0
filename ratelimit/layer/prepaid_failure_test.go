package layer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestCallerThatLeavesIsNotCharged checks that the units of a caller that leaves while it waits stay in the
// allotment.
func TestCallerThatLeavesIsNotCharged(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		for range 10 {
			require.True(q, q.take(1).Allowed)
		}
		require.NoError(q, drain(q))
		before := q.charged() - q.available()
		q.spy.Hold = make(chan struct{})
		why := errors.New("gone")
		ctx, cancel := context.WithCancelCause(q.Context())
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := q.DoOne(ctx, ratelimit.Op{Rule: q.rule, Key: "k", N: 3, Kind: ratelimit.Take})
				errs <- err
			}()
		}
		synctest.Wait()
		require.NotNil(q, q.key().refill)
		cancel(why)
		require.ErrorIs(q, <-errs, why)
		require.ErrorIs(q, <-errs, why)
		close(q.spy.Hold)
		synctest.Wait()
		require.Equal(q, before, q.charged()-q.available())
		require.Greater(q, q.available(), int64(0))
	})
}

// TestIdleKeyIsForgottenAfterWaits checks that the layer also forgets an idle key if callers have waited for its
// allotment.
func TestIdleKeyIsForgottenAfterWaits(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		q.warm()
		require.NoError(q, drain(q))
		q.spy.Hold = make(chan struct{})
		ctx, cancel := context.WithCancel(q.Context())
		for _, ctx := range []context.Context{ctx, q.Context()} {
			go func() { _, _ = q.DoOne(ctx, take(q.rule, "k", 1)) }()
		}
		synctest.Wait()
		require.NotNil(q, q.key().refill)
		cancel()
		synctest.Wait()
		close(q.spy.Hold)
		synctest.Wait()
		<-time.After(4 * time.Second)
		synctest.Wait()
		require.Nil(q, q.key())
	})
}

// TestAllotmentCountsFromBeforeItsCall checks that an allotment lasts from the time before its call, and not from the
// reply.
func TestAllotmentCountsFromBeforeItsCall(t *testing.T) {
	r := gcra(1000)
	c := &refill{op: ratelimit.Op{Rule: r, N: 10, Kind: ratelimit.Take, Prepaid: time.Second}, sent: 5 * time.Second}
	res := ratelimit.Result{Allowed: true}
	h := newAllotment(c, &res, 5*time.Second+500*time.Millisecond)
	require.Less(t, h.end, c.sent+c.op.ValidFor(res))
	require.Greater(t, h.end, c.sent+990*time.Millisecond)
}

// drain spends all prepaid units.
func drain(q prepaidTest) error {
	synctest.Wait()
	for n := q.available(); n > 0; n = q.available() {
		k := q.key()
		k.mu.Lock()
		k.spend(1, q.sinceStart())
		k.mu.Unlock()
	}
	return nil
}

func TestErrorReachesAllWaiters(t *testing.T) {
	down := fmt.Errorf("%w: it is down", ratelimit.ErrStore)
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		for range 10 {
			q.take(1)
		}
		require.NoError(q, drain(q))
		q.spy.Hold = make(chan struct{})
		q.spy.Before = func(context.Context) error { return down }
		errs := make(chan error, 5)
		for range cap(errs) {
			go func() {
				_, err := q.DoOne(q.Context(), ratelimit.Op{Rule: q.rule, Key: "k", N: 1, Kind: ratelimit.Take})
				errs <- err
			}()
		}
		synctest.Wait()
		calls := q.calls()
		close(q.spy.Hold)
		for range cap(errs) {
			require.ErrorIs(q, <-errs, down)
		}
		require.Equal(q, calls, q.calls(), "one call for all")
		q.spy.Before = nil
		require.True(q, q.take(1).Allowed, "it goes on")
	})
}

func TestAllotmentTimeout(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{Timeout: 300 * time.Millisecond}, func(q prepaidTest) {
		for range 10 {
			q.take(1)
		}
		require.NoError(q, drain(q))
		q.spy.Before = func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		begun := time.Now()
		_, err := q.DoOne(q.Context(), ratelimit.Op{Rule: q.rule, Key: "k", N: 1, Kind: ratelimit.Take})
		require.ErrorIs(q, err, ratelimit.ErrStore)
		require.Equal(q, 300*time.Millisecond, time.Since(begun))
		q.spy.Before = nil
	})
}

func TestPanicOfTheStoreIsAnError(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		for range 10 {
			q.take(1)
		}
		require.NoError(q, drain(q))
		q.spy.Before = func(context.Context) error { panic("ouch") }
		_, err := q.DoOne(q.Context(), take(q.rule, "k", 1))
		require.ErrorIs(q, err, ratelimit.ErrStore)
		require.ErrorContains(q, err, "ouch")
		q.spy.Before = func(context.Context) error { runtime.Goexit(); return nil }
		_, err = q.DoOne(q.Context(), ratelimit.Op{Rule: q.rule, Key: "k", N: 1, Kind: ratelimit.Take})
		require.ErrorIs(q, err, ratelimit.ErrStore)
		q.spy.Before = nil
		require.True(q, q.take(1).Allowed)
	})
}

func TestCloseDuringCalls(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		q.spy.Before = func(context.Context) error { <-time.After(time.Millisecond); return nil }
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 50 {
					q.take(1)
					<-time.After(100 * time.Microsecond)
				}
			})
		}
		<-time.After(7 * time.Millisecond)
		require.NoError(q, q.Close())
		require.Zero(q, q.available())
		all.Wait()
		require.EqualValues(q, 400, q.charged())
		require.Equal(q, ratelimit.FromStore, q.take(1).Source)
	})
}

func TestCloseWithHangingStore(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		q.warm()
		q.spy.Hold = make(chan struct{})
		begun := time.Now()
		require.ErrorContains(q, q.Close(), "does not answer")
		require.Equal(q, 2*time.Second, time.Since(begun))
		close(q.spy.Hold)
	})
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		q.warm()
		q.spy.Before = func(context.Context) error { return ratelimit.ErrStore }
		require.ErrorIs(q, q.Close(), ratelimit.ErrStore)
	})
}

func TestMaxKeys(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{MaxKeys: 640}, func(q prepaidTest) {
		known := func() int {
			q.mu.Lock()
			defer q.mu.Unlock()
			return q.tracked
		}
		ask := func(name string, keys int) {
			for i := range keys {
				_, err := q.DoOne(q.Context(), ratelimit.Op{Rule: q.rule, Key: fmt.Sprint(name, i), N: 1, Kind: ratelimit.Take})
				require.NoError(q, err)
			}
		}
		ask("old", 5000)
		require.LessOrEqual(q, known(), 640)
		require.Greater(q, known(), 500)
		<-time.After(3 * time.Second)
		ask("new", 400) // by keys that come, old ones go
		require.LessOrEqual(q, known(), 500)
	})
}

func TestAllotmentValidates(t *testing.T) {
	withPrepaid(t, leasable, PrepaidOptions{}, func(q prepaidTest) {
		q.warm()
		for want, op := range map[error]ratelimit.Op{
			ratelimit.ErrOp:       {Rule: leasable, Key: "k", N: -1, Kind: ratelimit.Take},
			ratelimit.ErrTooLarge: {Rule: leasable, Key: "k", N: 1001, Kind: ratelimit.Take},
			ratelimit.ErrOverflow: {Rule: leasable, Key: "k", N: 1 << 54, Kind: ratelimit.Add},
			ratelimit.ErrInterval: {Rule: leasable, Key: "k", Interval: time.Hour, Kind: ratelimit.Count},
		} {
			_, err := q.DoOne(q.Context(), op)
			require.ErrorIs(q, err, want)
		}
		_, err := q.DoOne(q.Context(), ratelimit.Op{Key: "k", N: 1, Kind: ratelimit.Take})
		require.ErrorIs(q, err, ratelimit.ErrOp)
		ctx, cancel := context.WithCancel(q.Context())
		cancel()
		_, err = q.DoOne(ctx, ratelimit.Op{Rule: leasable, Key: "k", N: 1, Kind: ratelimit.Take})
		require.ErrorIs(q, err, context.Canceled)
	})
}
