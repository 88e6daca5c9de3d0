package coord_test

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/memstore"
	"github.com/lazyreq/lazyreq/internal/option"
)

// tenSeconds has a lifetime of ten seconds and a margin of a second.
var tenSeconds = coord.LeaseOptions{Lifetime: 10 * time.Second, Margin: time.Second, Name: "one"}

func acquired(t *testing.T, l *coord.Leases, user string) *coord.Lease {
	t.Helper()
	lease := must(l.Acquire(t.Context(), user))
	return lease
}

// in runs a test in a synctest bubble, with leases in memory.
func in(t *testing.T, o coord.LeaseOptions, test func(t *testing.T, m *memstore.Store, l *coord.Leases)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t, memstore.Options{})
		test(t, m, newLeases(t, m, o))
	})
}

// ended fails the test unless the lease has ended with this cause.
func ended(t *testing.T, l *coord.Lease, cause error) {
	t.Helper()
	synctest.Wait()
	select {
	case <-l.Context().Done():
	default:
		t.Fatal("the lease has not ended")
	}
	require.ErrorIs(t, l.Context().Err(), context.Canceled)
	require.ErrorIs(t, context.Cause(l.Context()), cause)
}

func lives(t *testing.T, l *coord.Lease) {
	t.Helper()
	synctest.Wait()
	require.NoError(t, l.Context().Err())
	select {
	case <-l.Context().Done():
		t.Fatal("the lease has ended")
	default:
	}
}

func TestLeaseEndsLocallyFirst(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		lease := acquired(t, l, "u")
		require.Equal(t, "u", lease.User())
		require.Equal(t, time.Now().Add(9*time.Second), lease.Deadline())
		derived, cancel := context.WithCancel(lease.Context())
		defer cancel()
		pass(9*time.Second - 1)
		lives(t, lease)
		pass(1)
		ended(t, lease, coord.ErrEnded)
		require.ErrorIs(t, context.Cause(derived), coord.ErrEnded)
		_, err := l.Acquire(t.Context(), "u")
		require.ErrorIs(t, err, coord.ErrHeld, "by the store's clock")
		require.ErrorIs(t, lease.Renew(t.Context()), coord.ErrEnded)
		pass(time.Second)
		next := acquired(t, l, "u")
		require.Greater(t, next.Number(), lease.Number())
		require.ErrorIs(t, lease.Release(), coord.ErrLost)
		lives(t, next)
		require.NoError(t, next.Release())
	})
}

func TestDefaults(t *testing.T) {
	in(t, coord.LeaseOptions{}, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		lease := acquired(t, l, "u")
		require.Equal(t, time.Now().Add(28500*time.Millisecond), lease.Deadline())
		_, err := l.Acquire(t.Context(), "u")
		var denied *coord.DeniedError
		require.ErrorAs(t, err, &denied)
		require.Regexp(t, `:\d+$`, denied.Holder)
		require.ErrorIs(t, lease.Renew(t.Context()), coord.ErrMaxLifetime)
		require.NoError(t, lease.Release())
		acquired(t, l, "u").Release() // without a MinInterval, the next lease can begin at once
	})
}

func TestInvalidLeaseOptions(t *testing.T) {
	m := newMemory(t, memstore.Options{})
	for _, test := range []struct {
		field   string
		options coord.LeaseOptions
	}{
		{"Lifetime", coord.LeaseOptions{Lifetime: time.Millisecond - 1}},
		{"Lifetime", coord.LeaseOptions{Lifetime: math.MaxInt64}},
		{"MaxLifetime", coord.LeaseOptions{Lifetime: time.Second, MaxLifetime: time.Second - 1}},
		{"MinInterval", coord.LeaseOptions{MinInterval: -1}},
		{"MinInterval", coord.LeaseOptions{MinInterval: 1}},
		{"Margin", coord.LeaseOptions{Lifetime: time.Second, Margin: time.Second}},
		{"Margin", coord.LeaseOptions{Lifetime: time.Second, Margin: -1}},
		{"Poll", coord.LeaseOptions{Poll: 1}},
		{"Name", coord.LeaseOptions{Name: string(make([]byte, coord.MaxName+1))}},
	} {
		_, err := coord.NewLeases(m, test.options)
		var invalid *option.Error
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, "coord", invalid.Package)
		require.Equal(t, "LeaseOptions."+test.field, invalid.Field)
	}
	_, err := coord.NewLeases(nil, coord.LeaseOptions{})
	require.ErrorContains(t, err, "store is nil")
	_, err = coord.NewLeases((*memstore.Store)(nil), coord.LeaseOptions{})
	require.ErrorContains(t, err, "store is nil")
	l := newLeases(t, m, coord.LeaseOptions{})
	for _, user := range []string{"", string(make([]byte, coord.MaxName+1))} {
		_, err = l.Acquire(t.Context(), user)
		require.ErrorIs(t, err, coord.ErrInvalid)
		_, err = l.Wait(t.Context(), user)
		require.ErrorIs(t, err, coord.ErrInvalid)
	}
}

func TestRenew(t *testing.T) {
	o := tenSeconds
	o.MaxLifetime = 25 * time.Second
	in(t, o, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		lease := acquired(t, l, "u")
		for range 2 {
			pass(8 * time.Second)
			require.NoError(t, lease.Renew(t.Context()))
		}
		require.Equal(t, time.Now().Add(8*time.Second), lease.Deadline(), "MaxLifetime less Margin")
		pass(time.Second)
		require.ErrorIs(t, lease.Renew(t.Context()), coord.ErrMaxLifetime)
		pass(7*time.Second - 1)
		lives(t, lease)
		pass(1)
		ended(t, lease, coord.ErrEnded)
	})
}

func TestRenewalReplyAfterTheEnd(t *testing.T) {
	o := tenSeconds
	o.MaxLifetime = time.Hour
	in(t, o, func(t *testing.T, m *memstore.Store, _ *coord.Leases) {
		slow := &slowStore{LeaseStore: m}
		l := newLeases(t, slow, o)
		lease := acquired(t, l, "u")
		pass(8 * time.Second)
		slow.after = 2 * time.Second
		require.ErrorIs(t, lease.Renew(t.Context()), coord.ErrEnded, "the answer came after the end")
		ended(t, lease, coord.ErrEnded)
		slow.after = 0
		require.NoError(t, lease.Release())
		must(l.Acquire(t.Context(), "u"))
	})
}

// slowStore is a store that waits before or after Acquire and Renew.
type slowStore struct {
	coord.LeaseStore
	before, after time.Duration // the times of waiting
	asked         int
	mu            sync.Mutex
}

func (s *slowStore) Acquire(ctx context.Context, user string, r coord.LeaseRequest) (int64, error) {
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	pass(s.before)
	defer pass(s.after)
	return s.LeaseStore.Acquire(ctx, user, r)
}

// questions returns the number of calls of Acquire.
func (s *slowStore) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *slowStore) Renew(ctx context.Context, user string, r coord.LeaseRequest) error {
	pass(s.before)
	defer pass(s.after)
	return s.LeaseStore.Renew(ctx, user, r)
}

// TestSlowStoreShortensLeases checks that a lease's deadline is counted from the time before the call of the store.
func TestSlowStoreShortensLeases(t *testing.T) {
	for _, slow := range []*slowStore{{before: 3 * time.Second}, {after: 3 * time.Second}} {
		o := tenSeconds
		o.MaxLifetime = time.Hour
		in(t, o, func(t *testing.T, m *memstore.Store, _ *coord.Leases) {
			slow.LeaseStore = m
			l := newLeases(t, slow, o)
			began := time.Now()
			lease := acquired(t, l, "u")
			require.Equal(t, began.Add(9*time.Second), lease.Deadline())
			began = time.Now()
			require.NoError(t, lease.Renew(t.Context()))
			require.Equal(t, began.Add(9*time.Second), lease.Deadline())
			require.NoError(t, lease.Release())
		})
	}
}

func TestRenewalNeverShortens(t *testing.T) {
	o := tenSeconds
	o.MaxLifetime = time.Hour
	in(t, o, func(t *testing.T, m *memstore.Store, _ *coord.Leases) {
		slow := &slowStore{LeaseStore: m, after: 3 * time.Second}
		lease := acquired(t, newLeases(t, slow, o), "u")
		renewed := make(chan error)
		go func() { renewed <- lease.Renew(t.Context()) }()
		synctest.Wait()
		pass(time.Second)
		slow.after = 0
		require.NoError(t, lease.Renew(t.Context()))
		deadline := lease.Deadline()
		require.NoError(t, <-renewed)
		require.Equal(t, deadline, lease.Deadline(), "the first renewal, whose reply came later, changes nothing")
		require.NoError(t, lease.Release())
	})
}

func TestLateGrantIsReleased(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, _ *coord.Leases) {
		_, err := newLeases(t, &slowStore{LeaseStore: m, after: 9 * time.Second}, tenSeconds).Acquire(t.Context(), "u")
		require.ErrorIs(t, err, coord.ErrStore)
		synctest.Wait()
		acquired(t, newLeases(t, m, tenSeconds), "u")
	})
}

// TestErrReadsTheClock checks that a process that was paused sees the end of its lease at the next check, even if no
// timer has run.
func TestErrReadsTheClock(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // with a single processor, no timer runs while the test is busy
	o := coord.LeaseOptions{Lifetime: 300 * time.Millisecond}
	l := newLeases(t, newMemory(t, memstore.Options{}), o)
	other, lease := acquired(t, l, "other"), acquired(t, l, "u")
	err := lease.Run(t.Context(), func(ctx context.Context) error {
		for deadline := lease.Deadline(); time.Now().Before(deadline); {
			continue
		}
		require.Error(t, ctx.Err())
		require.ErrorIs(t, context.Cause(ctx), coord.ErrEnded)
		_ = other.Release()
		require.ErrorIs(t, context.Cause(other.Context()), coord.ErrEnded, "it was not the release")
		return ctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Error(t, lease.Context().Err())
}

func TestReleaseTwice(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, l *coord.Leases) {
		lease := acquired(t, l, "u")
		require.NoError(t, lease.Release())
		ended(t, lease, coord.ErrReleased)
		require.ErrorIs(t, lease.Renew(t.Context()), coord.ErrReleased)
		next := acquired(t, l, "u")
		require.NoError(t, lease.Release(), "nothing is left to release")
		lives(t, next)
		pass(time.Hour)
		ended(t, lease, coord.ErrReleased)
	})
}

// failingStore is a store whose Renew and Release fail if the test sets an error.
type failingStore struct {
	coord.LeaseStore
	err atomic.Pointer[error]
}

func (s *failingStore) fail(err error) { s.err.Store(&err) }

func (s *failingStore) failure() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (s *failingStore) Release(ctx context.Context, user string, r coord.LeaseRequest) error {
	if err := s.failure(); err != nil {
		return err
	}
	return s.LeaseStore.Release(ctx, user, r)
}

func (s *failingStore) Renew(ctx context.Context, user string, r coord.LeaseRequest) error {
	if err := s.failure(); err != nil {
		return err
	}
	return s.LeaseStore.Renew(ctx, user, r)
}

func TestReleaseAfterAFailedOne(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, _ *coord.Leases) {
		s := &failingStore{LeaseStore: m}
		s.fail(coord.ErrStore)
		l := newLeases(t, s, tenSeconds)
		lease := acquired(t, l, "u")
		require.ErrorIs(t, lease.Release(), coord.ErrStore)
		ended(t, lease, coord.ErrReleased)
		_, err := l.Acquire(t.Context(), "u")
		require.ErrorIs(t, err, coord.ErrHeld)
		s.fail(nil)
		require.NoError(t, lease.Release())
		acquired(t, l, "u")
	})
}

func TestReleaseOfLostLease(t *testing.T) {
	in(t, tenSeconds, func(t *testing.T, m *memstore.Store, _ *coord.Leases) {
		s := &failingStore{LeaseStore: m}
		lease := acquired(t, newLeases(t, s, tenSeconds), "u")
		s.fail(coord.ErrLost)
		require.ErrorIs(t, lease.Release(), coord.ErrLost)
		s.fail(coord.ErrStore)
		require.NoError(t, lease.Release(), "the store is not called again")
	})
}

func TestFailedRenewal(t *testing.T) {
	o := tenSeconds
	o.MaxLifetime = time.Hour
	in(t, o, func(t *testing.T, m *memstore.Store, _ *coord.Leases) {
		s := &failingStore{LeaseStore: m}
		lease := acquired(t, newLeases(t, s, o), "u")
		deadline := lease.Deadline()
		pass(time.Second)
		s.fail(coord.ErrStore)
		require.ErrorIs(t, lease.Renew(t.Context()), coord.ErrStore)
		require.Equal(t, deadline, lease.Deadline())
		lives(t, lease)
		s.fail(coord.ErrLost)
		require.ErrorIs(t, lease.Renew(t.Context()), coord.ErrLost)
		ended(t, lease, coord.ErrLost)
		require.ErrorIs(t, lease.Renew(t.Context()), coord.ErrLost)
	})
}

// TestNoCallWaitsForARenewal checks that Release and the end of Run do not wait for a renewal in flight, which takes
// five seconds.
func TestNoCallWaitsForARenewal(t *testing.T) {
	o := tenSeconds
	o.MaxLifetime = time.Hour
	in(t, o, func(t *testing.T, m *memstore.Store, _ *coord.Leases) {
		slow := &slowStore{LeaseStore: m}
		l := newLeases(t, slow, o)
		lease, other := acquired(t, l, "u"), acquired(t, l, "v")
		slow.after = 5 * time.Second
		began := time.Now()
		renewed := make(chan error)
		go func() { renewed <- lease.Renew(t.Context()) }()
		synctest.Wait()
		require.NoError(t, lease.Release())
		require.NoError(t, other.Run(t.Context(), func(context.Context) error {
			pass(o.Lifetime/3 + time.Second) // now a renewal is in flight
			return nil
		}))
		require.Equal(t, o.Lifetime/3+time.Second, time.Since(began))
		require.ErrorIs(t, <-renewed, coord.ErrReleased)
		pass(5 * time.Second) // the renewal of other ends, too
		slow.after = 0
		acquired(t, l, "u")
		acquired(t, l, "v")
	})
}
