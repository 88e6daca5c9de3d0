package layer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

// forward is a clock that goes back only while the cache has no denial. The cache's own clock is monotonic, so it
// cannot follow a store's clock that goes back.
type forward struct {
	*storetest.ManualClock
	cache *denyCache
}

func (c *forward) Advance(d time.Duration) {
	if d < 0 && c.cache != nil {
		if c.cache.table.any(c.cache.now()) {
			return
		}
		c.cache.table.clear() // otherwise denials that have ended would be valid again
	}
	c.ManualClock.Advance(d)
}

// any reports whether the table has a denial that ends after now.
func (t *denialTable) any(now time.Duration) bool {
	for i := range t.sets {
		for j := range t.sets[i].entries {
			if n := t.sets[i].entries[j].Load(); n != nil && n.until > now {
				return true
			}
		}
	}
	return false
}

func (t *denialTable) clear() {
	for i := range t.sets {
		for j := range t.sets[i].entries {
			t.sets[i].entries[j].Store(nil)
		}
	}
}

func newForwardClock() *forward {
	return &forward{ManualClock: storetest.NewClock(someTime)}
}

func memoryOf(tb require.TestingT, clock *forward) *memstore.Store {
	store, err := memstore.New(memstore.Options{Clock: clock.Now})
	require.NoError(tb, err)
	return store
}

// cacheAround returns a cache around inner that reads the time from clock.
func cacheAround(tb require.TestingT, inner ratelimit.Store, clock *forward, o DenyCacheOptions) *denyCache {
	c, err := newDenyCache(inner, o)
	require.NoError(tb, err)
	start := clock.Now()
	c.now, clock.cache = func() time.Duration { return clock.Now().Sub(start) }, c
	return c
}

func TestDenyCacheConformsToStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) {
		clock := newForwardClock()
		return cacheAround(t, memoryOf(t, clock), clock, DenyCacheOptions{MaxKeys: 64}), clock
	}, storetest.Everything)
}
