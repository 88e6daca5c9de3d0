package coord_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/memstore"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testhost.Lingers))
}

func newMemory(t testing.TB, o memstore.Options) *memstore.Store {
	t.Helper()
	m, err := memstore.New(o)
	require.NoError(t, err)
	return m
}

func newTokens(t testing.TB, s coord.TokenStore) *coord.Tokens {
	t.Helper()
	tokens, err := coord.NewTokens(s)
	require.NoError(t, err)
	return tokens
}

func newLeases(t testing.TB, s coord.LeaseStore, o coord.LeaseOptions) *coord.Leases {
	t.Helper()
	leases, err := coord.NewLeases(s, o)
	require.NoError(t, err)
	return leases
}

// pass waits for d. In a synctest bubble, this takes no real time.
func pass(d time.Duration) { <-time.After(d) }

// must returns v. It panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
