package coord_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/memstore"
)

func TestWait(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		began := time.Now()
		lease := must(l.Wait(t.Context(), "u"))
		require.Zero(t, time.Since(began), "it was free")
		other := newLeases(t, m, tenSeconds)

		time.AfterFunc(5*time.Second, func() { _ = lease.Release() }) // the lease is released in this process
		lease, err := l.Wait(t.Context(), "u")
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(began))

		began = time.Now()
		time.AfterFunc(5*time.Second, func() { _ = lease.Release() }) // the lease is released in another process
		lease = must(other.Wait(t.Context(), "u"))
		require.InDelta(t, 5.6, time.Since(began).Seconds(), 0.6)

		began = time.Now() // the lease is never released
		must(l.Wait(t.Context(), "u"))
		require.InDelta(t, 10.05, time.Since(began).Seconds(), 0.051, "the end is known")
		ended(t, lease, coord.ErrEnded)
	})
}

func TestWaitersPoll(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, _ *coord.Leases) {
		s := &slowStore{LeaseStore: m}
		l := newLeases(t, s, tenSeconds)
		acquired(t, l, "u")
		var wg sync.WaitGroup
		for range 20 { // nineteen waiters wait for the first one
			wg.Go(func() {
				lease, err := l.Wait(t.Context(), "u")
				if err != nil || lease.Release() != nil {
					t.Error(err)
				}
			})
		}
		pass(9 * time.Second)
		require.InDelta(t, 9, s.questions(), 2)
		wg.Wait()
		require.InDelta(t, 11+19, s.questions(), 10, "nineteen pollers would ask some 200 times")
	})
}

func TestWaitRespectsMinInterval(t *testing.T) {
	o := tenSeconds
	o.MinInterval = 30 * time.Second
	in(t, o, func(t *testing.T, m *memstore.Store, _ *coord.Leases) {
		s := &slowStore{LeaseStore: m}
		l := newLeases(t, s, o)
		began := time.Now()
		lease := acquired(t, l, "u")
		time.AfterFunc(5*time.Second, func() { _ = lease.Release() }) // before MinInterval has passed
		lease, err := l.Wait(t.Context(), "u")
		require.NoError(t, err)
		require.InDelta(t, 30, time.Since(began).Seconds(), 0.01)
		require.Equal(t, 3, s.questions())
		require.NoError(t, lease.Release())

		before := s.questions() // the second wait begins when the lease has no holder
		began = time.Now()
		must(l.Wait(t.Context(), "u"))
		require.InDelta(t, 31.5, time.Since(began).Seconds(), 1.501)
		require.Equal(t, 2, s.questions()-before)
	})
}

// TestWaitersAreInOrder checks that waiters get the lease in order, even if some of them leave.
func TestWaitersAreInOrder(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		lease := acquired(t, l, "u")
		var got []int
		var wg sync.WaitGroup
		leave := make(map[int]context.CancelCauseFunc)
		left := errors.New("left")
		for i := range 10 {
			ctx, cancel := context.WithCancelCause(t.Context())
			leave[i] = cancel
			wg.Go(func() {
				lease, err := l.Wait(ctx, "u")
				if err != nil {
					assert.ErrorIs(t, err, left)
					return
				}
				got = append(got, i)
				pass(time.Second)
				assert.NoError(t, lease.Release())
			})
			synctest.Wait()
		}
		for _, i := range []int{0, 4, 9} { // the first waiter, one in the middle, and the last
			leave[i](left)
			synctest.Wait()
		}
		other := acquired(t, l, "v")
		require.NoError(t, other.Release())
		require.NoError(t, lease.Release())
		began := time.Now()
		wg.Wait()
		require.Equal(t, []int{1, 2, 3, 5, 6, 7, 8}, got)
		require.Equal(t, 7*time.Second, time.Since(began), "each was woken by the one before")
	})
}

// TestReleaseWakesNoLaterWaiter checks that a release wakes only the first waiter. The first waiter is just asking
// the store and gets the lease.
func TestReleaseWakesNoLaterWaiter(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, _ *coord.Leases) {
		s := &slowStore{LeaseStore: m, before: 100 * time.Millisecond}
		l := newLeases(t, s, tenSeconds)
		lease := acquired(t, l, "u")
		time.AfterFunc(50*time.Millisecond, func() { _ = lease.Release() })
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _, _ = l.Wait(ctx, "u") })
			synctest.Wait()
		}
		pass(500 * time.Millisecond)
		require.Equal(t, 3, s.questions(), "each waiter asks once")
		cancel()
		wg.Wait()
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		lease := acquired(t, l, "u")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 1500*time.Millisecond, errors.New("left"))
		defer cancel()
		began := time.Now()
		_, err := l.Wait(ctx, "u")
		require.ErrorContains(t, err, "left")
		require.Equal(t, 1500*time.Millisecond, time.Since(began))
		lives(t, lease)
		_, err = l.Wait(ctx, "free")
		require.ErrorContains(t, err, "left", "whose context has ended before")
	})
}

func TestStoreErrorEndsWait(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		full := newMemory(t, memstore.Options{MaxBytes: 1})
		_, err := newLeases(t, full, tenSeconds).Wait(t.Context(), "u")
		require.ErrorIs(t, err, memstore.ErrFull)
	})
}

// TestLeaseOutlivesItsContext checks that a lease does not end with the context of Acquire or Wait.
func TestLeaseOutlivesItsContext(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		for i, get := range []func(context.Context, string) (*coord.Lease, error){l.Acquire, l.Wait} {
			ctx, cancel := context.WithCancel(t.Context())
			lease := must(get(ctx, fmt.Sprint(i)))
			cancel()
			lives(t, lease)
			require.NoError(t, lease.Release())
		}
	})
}
