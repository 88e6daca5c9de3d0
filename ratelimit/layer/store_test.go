package layer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

var someTime = time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)

func newMemory(tb testing.TB) (*memstore.Store, *storetest.ManualClock) {
	clock := storetest.NewClock(someTime)
	m, err := memstore.New(memstore.Options{Clock: clock.Now})
	require.NoError(tb, err)
	return m, clock
}

func gcra(limit int64) ratelimit.Rule {
	return ratelimit.GCRA(limit, time.Minute)
}

func take(r ratelimit.Rule, key string, n int64) ratelimit.Op {
	return ratelimit.Op{Rule: r, Key: key, N: n, Kind: ratelimit.Take}
}
