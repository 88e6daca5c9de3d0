package memstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newStore(t testing.TB, o Options) *Store {
	t.Helper()
	m, err := New(o)
	require.NoError(t, err)
	return m
}

func newLimiter(t testing.TB, s ratelimit.Store, r ratelimit.Rule) *ratelimit.Limiter {
	t.Helper()
	l, err := ratelimit.NewLimiter(s, r)
	require.NoError(t, err)
	return l
}

// hand is a clock that only the test moves.
type hand struct{ now time.Time }

func newHand() *hand { return &hand{time.Unix(1_800_000_000, 0)} }

func (h *hand) clock() time.Time { return h.now }

func (h *hand) advance(d time.Duration) { h.now = h.now.Add(d) }

func opOf(kind ratelimit.Kind, r ratelimit.Rule, key string, n int64) ratelimit.Op {
	return ratelimit.Op{Rule: r, Key: key, N: n, Kind: kind}
}

func doOne(t testing.TB, m *Store, kind ratelimit.Kind, r ratelimit.Rule, key string, n int64) ratelimit.Result {
	t.Helper()
	res, err := m.DoOne(t.Context(), opOf(kind, r, key, n))
	require.NoError(t, err)
	return res
}

func take(t testing.TB, m *Store, r ratelimit.Rule, key string, n int64) ratelimit.Result {
	t.Helper()
	return doOne(t, m, ratelimit.Take, r, key, n)
}

func add(t testing.TB, m *Store, r ratelimit.Rule, key string, n int64) ratelimit.Result {
	t.Helper()
	return doOne(t, m, ratelimit.Add, r, key, n)
}

// remaining returns the rest of a key's quota.
func remaining(t testing.TB, m *Store, r ratelimit.Rule, key string) int64 {
	t.Helper()
	return doOne(t, m, ratelimit.Peek, r, key, 1).Remaining
}
