package coord_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/memstore"
	"github.com/lazyreq/lazyreq/coord/redisstore"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

type ctxKey struct{}

func TestRunHoldsTheLease(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		ctx, failed := context.WithValue(t.Context(), ctxKey{}, "value"), errors.New("failed")
		err := l.Run(ctx, "u", func(ctx context.Context) error {
			require.Equal(t, "value", ctx.Value(ctxKey{}))
			require.ErrorIs(t, l.Run(ctx, "u", nil), coord.ErrHeld)
			require.NoError(t, l.Run(ctx, "v", func(context.Context) error { return nil }))
			return failed
		})
		require.ErrorIs(t, err, failed)
		acquired(t, l, "u")
	})
}

func TestRunEndsWithTheLease(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		began := time.Now()
		err := l.Run(t.Context(), "u", func(ctx context.Context) error {
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), coord.ErrEnded)
			return nil
		})
		require.ErrorIs(t, err, coord.ErrEnded, "it may not have been alone at the end")
		require.Equal(t, 9*time.Second, time.Since(began))
		acquired(t, l, "u") // Run has released the lease
	})
}

func TestRunRenews(t *testing.T) {
	o := tenSeconds
	o.MaxLifetime = time.Minute
	in(t, o, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		began := time.Now()
		err := l.Run(t.Context(), "u", func(ctx context.Context) error {
			for ctx.Err() == nil {
				require.ErrorIs(t, l.Run(ctx, "u", nil), coord.ErrHeld)
				pass(100 * time.Millisecond)
			}
			return nil
		})
		require.ErrorIs(t, err, coord.ErrEnded)
		require.Equal(t, 59*time.Second, time.Since(began))
	})
}

// TestRunWithAFailingStore checks that a lease survives a store that fails for a while, and ends in time if the store
// continues to fail.
func TestRunWithAFailingStore(t *testing.T) {
	o := tenSeconds
	o.MaxLifetime = time.Hour
	in(t, o, func(t *testing.T, m *memstore.Store, _ *coord.Leases) {
		s := &failingStore{LeaseStore: m}
		l := newLeases(t, s, o)
		began := time.Now()
		err := l.Run(t.Context(), "u", func(ctx context.Context) error {
			pass(o.Lifetime / 6) // waits until halfway between two renewals
			for range 5 {
				s.fail(coord.ErrStore)
				pass(o.Lifetime / 3)
				s.fail(nil)
				pass(o.Lifetime / 3)
				require.NoError(t, ctx.Err())
			}
			began = time.Now()
			s.fail(coord.ErrStore)
			<-ctx.Done()
			return nil
		})
		require.ErrorIs(t, err, coord.ErrEnded)
		require.EqualError(t, err, "coord: the lease has ended: the latest renewal failed: coord: store unavailable")
		require.NotErrorIs(t, err, coord.ErrStore, "it is not the store's answer to a call of the caller")
		require.LessOrEqual(t, time.Since(began), 9*time.Second)
	})
}

// TestOnlyTheLatestRenewalIsNamed checks that a failed renewal before a successful one is not named as the cause.
func TestOnlyTheLatestRenewalIsNamed(t *testing.T) {
	o := tenSeconds
	o.MaxLifetime = 20 * time.Second
	in(t, o, func(t *testing.T, m *memstore.Store, _ *coord.Leases) {
		s := &failingStore{LeaseStore: m}
		s.fail(coord.ErrStore)
		err := newLeases(t, s, o).Run(t.Context(), "u", func(ctx context.Context) error {
			pass(o.Lifetime / 2)
			s.fail(nil)
			<-ctx.Done()
			return nil
		})
		require.EqualError(t, err, "coord: the lease has ended")
	})
}

func TestRunEndsWhenTheLeaseIsLost(t *testing.T) {
	o := tenSeconds
	o.MaxLifetime = time.Hour
	in(t, o, func(t *testing.T, m *memstore.Store, _ *coord.Leases) {
		s := &failingStore{LeaseStore: m}
		began := time.Now()
		err := newLeases(t, s, o).Run(t.Context(), "u", func(ctx context.Context) error {
			s.fail(coord.ErrLost)
			<-ctx.Done()
			return nil
		})
		require.ErrorIs(t, err, coord.ErrLost)
		require.Less(t, time.Since(began), 4*time.Second)
	})
}

func TestPanicReleases(t *testing.T) {
	o := tenSeconds
	o.MaxLifetime = time.Hour
	in(t, o, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		require.PanicsWithValue(t, "mine", func() {
			_ = l.Run(t.Context(), "u", func(context.Context) error { panic("mine") })
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = l.Run(t.Context(), "u", func(context.Context) error { runtime.Goexit(); return nil })
		}()
		<-done
		acquired(t, l, "u")
	})
}

// TestReleaseInsideRun checks that the context of fn ends when fn releases the lease.
func TestReleaseInsideRun(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		lease := acquired(t, l, "u")
		require.ErrorIs(t, lease.Run(t.Context(), func(ctx context.Context) error {
			require.NoError(t, lease.Release())
			require.ErrorIs(t, context.Cause(ctx), coord.ErrReleased)
			return nil
		}), coord.ErrReleased)
	})
}

// TestOneWorkerOnRedis checks that one of ten starts succeeds, and another one after the lifetime of two seconds. The
// first worker then cannot release the second lease.
func TestOneWorkerOnRedis(t *testing.T) {
	t.Parallel()
	server := testhost.StartRedis(t)
	var leases []*coord.Leases
	for range 2 {
		store := must(redisstore.New(server.Client(nil), redisstore.Options{Timeout: 10 * time.Second}))
		leases = append(leases, newLeases(t, store, coord.LeaseOptions{Lifetime: 2 * time.Second}))
	}
	oneWorker(t, leases)
}

func oneWorker(t *testing.T, leases []*coord.Leases) {
	var first atomic.Pointer[coord.Lease]
	errs := make(chan error, 10)
	for i := range cap(errs) {
		go func() {
			lease, err := leases[i%len(leases)].Acquire(t.Context(), "u")
			if err == nil {
				first.Store(lease)
			}
			errs <- err
		}()
	}
	denied := 0
	for range cap(errs) {
		if err := <-errs; err != nil {
			require.ErrorIs(t, err, coord.ErrHeld)
			denied++
		}
	}
	require.Equal(t, 9, denied)
	old := first.Load()
	require.NoError(t, old.Context().Err())
	pass(2100 * time.Millisecond)
	require.ErrorIs(t, context.Cause(old.Context()), coord.ErrEnded)
	next := must(leases[1].Acquire(t.Context(), "u"))
	require.ErrorIs(t, old.Release(), coord.ErrLost)
	require.NoError(t, next.Context().Err())
	require.Greater(t, next.Number(), old.Number())
	require.NoError(t, next.Release())
}

func TestRunOfAnEndedLease(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		lease := acquired(t, l, "u")
		pass(9 * time.Second)
		require.ErrorIs(t, lease.Run(t.Context(), nil), coord.ErrEnded)
		acquired(t, l, "u") // Run has released the lease
	})
}

func TestLeaseNeedsNoGoroutine(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		before := runtime.NumGoroutine()
		lease := acquired(t, l, "u")
		derived, cancel := context.WithCancel(lease.Context())
		defer cancel()
		_, cancel = context.WithTimeout(derived, time.Hour)
		defer cancel()
		synctest.Wait()
		require.Equal(t, before, runtime.NumGoroutine())
	})
}
