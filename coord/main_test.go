package coord_test

import (
	"flag"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/internal/redistest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // parallel tests wait for Redis, not for a processor
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(redistest.Lingers))
}

// patient is for tests that are not about time: machines that test are busy.
var patient = coord.RedisOptions{Timeout: 10 * time.Second}

func newRedis(t testing.TB, c redis.UniversalClient, o coord.RedisOptions) *coord.Redis {
	t.Helper()
	s, err := coord.NewRedis(c, o)
	require.NoError(t, err)
	return s
}

func newMemory(t testing.TB, o coord.MemoryOptions) *coord.Memory {
	t.Helper()
	m, err := coord.NewMemory(o)
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
