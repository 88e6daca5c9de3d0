package redisstore

import (
	"flag"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // parallel tests wait for Redis, not for a processor
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testhost.Lingers))
}

// patient is for tests in which Redis may be slow but not silent.
var patient = Options{Timeout: 10 * time.Second}

func newStore(tb testing.TB, c redis.UniversalClient, o Options) *Store {
	tb.Helper()
	s, err := New(c, o)
	require.NoError(tb, err)
	return s
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

func do(t *testing.T, s *Store, ops ...ratelimit.Op) []ratelimit.Result {
	t.Helper()
	results, err := s.Do(t.Context(), ops)
	require.NoError(t, err)
	return results
}

// keyOf returns the name of r's counter on a subject.
func keyOf(s *Store, subject string, r ratelimit.Rule) string {
	return s.counterKey(subject, counterName(r))
}

// blockKeyOf returns the name of what r's block remembers of a subject.
func blockKeyOf(s *Store, subject string, r ratelimit.Rule) string {
	return s.counterKey(subject, s.ruleArgsFor(&ratelimit.Op{Rule: r}).block)
}
