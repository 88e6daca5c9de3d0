package redisstore

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // parallel tests wait for Redis, not for a processor
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testhost.Lingers))
}

// patient has a timeout for tests in which Redis may be slow but always replies.
var patient = Options{Timeout: 10 * time.Second}

func newStore(tb testing.TB, c redis.UniversalClient, o Options) *Store {
	tb.Helper()
	s, err := New(c, o)
	require.NoError(tb, err)
	return s
}

// freeze gives a store a clock that only the test moves.
func freeze(s *Store) *storetest.ManualClock {
	clock := storetest.NewClock(time.Unix(1_000_000_000, 0))
	s.clock, s.wall = clock.Now, clock.Now
	return clock
}

// frozen returns a store on an empty Redis with a clock that only the test moves.
func frozen(t *testing.T) (*Store, *redis.Client, *storetest.ManualClock) {
	c := testhost.StartRedis(t).Client(nil)
	s := newStore(t, c, patient)
	return s, c, freeze(s)
}

func newLimiter(tb testing.TB, s ratelimit.Store, o ratelimit.BucketOptions) *ratelimit.Limiter {
	tb.Helper()
	l, err := ratelimit.NewLimiter(s, ratelimit.Buckets(o))
	require.NoError(tb, err)
	return l
}

func perMinute(limit int64) ratelimit.BucketOptions {
	return ratelimit.BucketOptions{Limit: limit, Per: time.Minute, Interval: 5 * time.Second, Span: 10 * time.Minute, Expiry: 20 * time.Minute}
}

func hourlyWindow(limit int64) ratelimit.Rule { return ratelimit.FixedWindow(limit, time.Hour) }

func opOf(kind ratelimit.Kind, r ratelimit.Rule, key string, n int64) ratelimit.Op {
	return ratelimit.Op{Rule: r, Key: key, N: n, Kind: kind}
}

// takeOf returns a take that begins a new group.
func takeOf(r ratelimit.Rule, key string, n int64) ratelimit.Op {
	return ratelimit.Op{Rule: r, Key: key, N: n, Kind: ratelimit.Take, NewGroup: true}
}

func refundOf(r ratelimit.Rule, key string, c ratelimit.Receipt) ratelimit.Op {
	return ratelimit.Op{Rule: r, Key: key, Kind: ratelimit.Refund, Receipt: c}
}

// onManyKeys returns ops of one unit on different keys.
func onManyKeys(kind ratelimit.Kind, r ratelimit.Rule, keys int) (ops []ratelimit.Op) {
	for i := range keys {
		op := opOf(kind, r, fmt.Sprint("many", i), 1)
		op.NewGroup = true
		ops = append(ops, op)
	}
	return ops
}

func do(t *testing.T, s *Store, ops ...ratelimit.Op) []ratelimit.Result {
	t.Helper()
	results, err := s.Do(t.Context(), ops)
	require.NoError(t, err)
	return results
}

// keyOf returns the Redis key of r's counter for a subject.
func keyOf(s *Store, subject string, r ratelimit.Rule) string {
	return s.counterKey(subject, counterName(r))
}

// blockKeyOf returns the Redis key of r's block for a subject.
func blockKeyOf(s *Store, subject string, r ratelimit.Rule) string {
	return s.counterKey(subject, s.ruleArgsFor(&ratelimit.Op{Rule: r}).block)
}
