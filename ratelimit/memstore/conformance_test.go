package memstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

func TestMemoryStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) {
		clock := storetest.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC))
		store, err := memstore.New(memstore.Options{Clock: clock.Now})
		require.NoError(t, err)
		return store, clock
	}, storetest.Everything)
}

func TestMemoryStoreBefore1970(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) {
		clock := storetest.NewClock(time.Date(1969, 12, 31, 23, 59, 0, 0, time.UTC))
		store, err := memstore.New(memstore.Options{Clock: clock.Now})
		require.NoError(t, err)
		return store, clock
	}, storetest.Everything)
}
