package memstore_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/memstore"
	"github.com/lazyreq/lazyreq/coord/storetest"
)

func newStore(t testing.TB, o memstore.Options) *memstore.Store {
	t.Helper()
	m, err := memstore.New(o)
	require.NoError(t, err)
	return m
}

func newLeases(t testing.TB, s coord.LeaseStore, o coord.LeaseOptions) *coord.Leases {
	t.Helper()
	leases, err := coord.NewLeases(s, o)
	require.NoError(t, err)
	return leases
}

// acquired acquires a lease that must be free.
func acquired(t *testing.T, l *coord.Leases, user string) *coord.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), user)
	require.NoError(t, err)
	return lease
}

// key returns a different key for each n.
func key(n int) (k coord.TokenKey) {
	copy(k[:], fmt.Sprint(n))
	return k
}

// pass waits for d. In a synctest bubble, this takes no real time.
func pass(d time.Duration) { <-time.After(d) }

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Host{
		Open:    func(t *testing.T) storetest.Store { return newStore(t, memstore.Options{}) },
		Advance: func(_ *testing.T, d time.Duration) { pass(d) }, // moves the clock of the bubble
		Within:  synctest.Test,
	})
}

// must returns v. It panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
