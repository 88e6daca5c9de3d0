package redisstore_test

import (
	"flag"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/redisstore"
	"github.com/lazyreq/lazyreq/internal/testhost"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // parallel tests mostly wait, so there may be more than processors
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testhost.Lingers))
}

// patient has a long timeout, for tests that do not check times. The machine may be busy.
var patient = redisstore.Options{Timeout: 10 * time.Second}

func newStore(t testing.TB, c redis.UniversalClient, o redisstore.Options) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(c, o)
	require.NoError(t, err)
	return s
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

// acquired acquires a lease that must be free.
func acquired(t *testing.T, l *coord.Leases, user string) *coord.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), user)
	require.NoError(t, err)
	return lease
}

// key returns a different key for each n.
func key(n int) coord.TokenKey { return coord.TokenKey{byte(n)} }

// pass waits for d.
func pass(d time.Duration) { <-time.After(d) }

// must returns v. It panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
