package memstore_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/memstore"
)

func TestFullStoreRefusesNewRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newStore(t, memstore.Options{MaxBytes: 64 << 10})
		issue := func(n int) error { return m.Issue(t.Context(), key(n), make([]byte, 512), time.Minute, time.Minute) }
		for n := range 63 {
			require.NoError(t, issue(n))
		}
		l := newLeases(t, m, coord.LeaseOptions{Lifetime: 10 * time.Second, Name: "one"})
		lease := acquired(t, l, "u")
		require.Equal(t, 64, m.Len())

		err := issue(100)
		require.ErrorIs(t, err, memstore.ErrFull)
		require.ErrorIs(t, err, coord.ErrStore)
		_, err = l.Acquire(t.Context(), strings.Repeat("v", 600))
		require.ErrorIs(t, err, memstore.ErrFull)
		require.Equal(t, 64, m.Len())

		// A full store evicts nothing, and its tokens and leases can still be used.
		_, err = l.Acquire(t.Context(), "u")
		require.ErrorIs(t, err, coord.ErrHeld)
		require.NoError(t, lease.Release())
		acquired(t, l, "u")
		for n := range 63 {
			must(m.Use(t.Context(), key(n), "a user with a name"))
		}

		pass(2 * time.Minute)
		require.NoError(t, issue(100))
		require.Equal(t, 2, m.Len(), "what was forgotten has left")
		pass(2 * time.Hour)
		_, err = m.Inspect(t.Context(), key(999))
		require.ErrorIs(t, err, coord.ErrUnknown)
		require.Zero(t, m.Len())
		for n := range 64 {
			require.NoError(t, issue(n), "nothing is counted that has left")
		}
		require.Error(t, issue(64))
	})
}

// TestGrowingNames checks that names count if they are added to existing records.
func TestGrowingNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newStore(t, memstore.Options{MaxBytes: 3 << 10})
		for _, name := range []string{"a", strings.Repeat("a", coord.MaxName), "a", strings.Repeat("a", coord.MaxName)} {
			l := newLeases(t, m, coord.LeaseOptions{Name: name})
			require.NoError(t, acquired(t, l, "u").Release())
		}
		require.NoError(t, m.Issue(t.Context(), key(1), make([]byte, 900), time.Minute, 0))
		require.ErrorIs(t, m.Issue(t.Context(), key(2), nil, time.Minute, 0), memstore.ErrFull)
		_, err := m.Use(t.Context(), key(1), strings.Repeat("a", coord.MaxName))
		require.NoError(t, err, "a use is never refused for want of memory")
		pass(2 * time.Minute)
		require.NoError(t, m.Issue(t.Context(), key(2), make([]byte, 900), time.Minute, 0))
	})
}

func TestInvalidMaxBytes(t *testing.T) {
	_, err := memstore.New(memstore.Options{MaxBytes: -1})
	require.ErrorContains(t, err, "MaxBytes")
	require.ErrorIs(t, newStore(t, memstore.Options{MaxBytes: 1}).Issue(t.Context(), key(1), nil, time.Minute, 0), memstore.ErrFull)
}

// TestManyExpiries checks that records expire in time if they were made in another order.
func TestManyExpiries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		m := newStore(t, memstore.Options{})
		for i := range n {
			life := time.Duration(1+(i*7919)%n) * time.Second
			require.NoError(t, m.Issue(t.Context(), key(i), nil, life, 0))
		}
		for i := range n {
			pass(time.Second)
			_, err := m.Inspect(t.Context(), key(n)) // the token is unknown, but the call removes expired ones
			require.ErrorIs(t, err, coord.ErrUnknown)
			require.Equal(t, n-1-i, m.Len())
		}
	})
}
