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

// The units of a caller that leaves while it waits stay in the lease.
func TestCallerThatLeavesIsNotCharged(t *testing.T) {
	withLease(t, leasable, LeaseOptions{}, func(q leaseTest) {
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

// A key that callers have waited for is forgotten like any other.
func TestIdleKeyIsForgottenAfterWaits(t *testing.T) {
	withLease(t, leasable, LeaseOptions{}, func(q leaseTest) {
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

// A lease's time counts from before the call that takes it.
func TestLeaseCountsFromBeforeItsCall(t *testing.T) {
	r := gcra(1000)
	o := LeaseOptions{}.withDefaults()
	c := &refillCall{op: ratelimit.Op{Rule: r, N: 10, Kind: ratelimit.Take, Prepaid: time.Second}, sent: 5 * time.Second}
	res := ratelimit.Result{Allowed: true}
	h := newHeldLease(newLeaseRule(r, &o), c, &res, 5*time.Second+500*time.Millisecond)
	require.Less(t, h.end, c.sent+c.op.ValidFor(res))
	require.Greater(t, h.end, c.sent+990*time.Millisecond)
}

// drain spends all leased units.
func drain(q leaseTest) error {
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
	withLease(t, leasable, LeaseOptions{}, func(q leaseTest) {
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

func TestLeaseTimeout(t *testing.T) {
	withLease(t, leasable, LeaseOptions{Timeout: 300 * time.Millisecond}, func(q leaseTest) {
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

func TestPanicReachesTheCaller(t *testing.T) {
	withLease(t, leasable, LeaseOptions{}, func(q leaseTest) {
		for range 10 {
			q.take(1)
		}
		require.NoError(q, drain(q))
		q.spy.Before = func(context.Context) error { panic("ouch") }
		require.PanicsWithValue(q, "ouch", func() { q.take(1) })
		require.NoError(q, drain(q))
		q.spy.Before = func(context.Context) error { runtime.Goexit(); return nil }
		_, err := q.DoOne(q.Context(), ratelimit.Op{Rule: q.rule, Key: "k", N: 1, Kind: ratelimit.Take})
		require.ErrorIs(q, err, ratelimit.ErrStore)
		q.spy.Before = nil
		require.True(q, q.take(1).Allowed)
	})
}

func TestCloseDuringCalls(t *testing.T) {
	withLease(t, leasable, LeaseOptions{}, func(q leaseTest) {
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
	withLease(t, leasable, LeaseOptions{}, func(q leaseTest) {
		q.warm()
		q.spy.Hold = make(chan struct{})
		begun := time.Now()
		require.ErrorContains(q, q.Close(), "does not answer")
		require.Equal(q, 2*time.Second, time.Since(begun))
		close(q.spy.Hold)
	})
	withLease(t, leasable, LeaseOptions{}, func(q leaseTest) {
		q.warm()
		q.spy.Before = func(context.Context) error { return ratelimit.ErrStore }
		require.ErrorIs(q, q.Close(), ratelimit.ErrStore)
	})
}

func TestMaxKeys(t *testing.T) {
	withLease(t, leasable, LeaseOptions{MaxKeys: 640}, func(q leaseTest) {
		known := func() int {
			q.mu.Lock()
			defer q.mu.Unlock()
			return q.keys
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

func TestLeaseOptions(t *testing.T) {
	m, _ := newMemory(t)
	for field, o := range map[string]LeaseOptions{
		"Lifetime is 1µs":    {Lifetime: time.Microsecond},
		"Lifetime is 2h0m0s": {Lifetime: 2 * time.Hour},
		"Max is -1":          {Max: -1},
		"Share is -1":        {Share: -1},
		"MaxKeys is -1":      {MaxKeys: -1},
		"Timeout is -1ns,":   {Timeout: -1},
	} {
		_, err := newLease(m, o)
		require.ErrorContains(t, err, "layer: LeaseOptions."+field)
	}
}

func TestLeaseValidates(t *testing.T) {
	withLease(t, leasable, LeaseOptions{}, func(q leaseTest) {
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
