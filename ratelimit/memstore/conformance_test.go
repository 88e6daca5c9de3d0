package memstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

func open(t require.TestingT, now time.Time) (ratelimit.Store, storetest.Clock) {
	clock := storetest.NewClock(now)
	store, err := memstore.New(memstore.Options{Clock: clock.Now})
	require.NoError(t, err)
	return store, clock
}

var someTime = time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)

func TestMemoryStore(t *testing.T) {
	for name, now := range map[string]time.Time{
		"2026":        someTime,
		"before 1970": time.Date(1969, 12, 31, 23, 59, 0, 0, time.UTC),
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) { return open(t, now) }, storetest.Everything)
		})
	}
}

func TestMemoryCalendar(t *testing.T) {
	storetest.RunCalendar(t, func(t *testing.T) (ratelimit.Store, storetest.Clock) { return open(t, someTime) }, 1)
}

// TestMemoryMatchesModel searches for a short sequence of ops for which the store and the model differ.
func TestMemoryMatchesModel(t *testing.T) {
	for name, back := range map[string]bool{"clock goes on": false, "clock goes back": true} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				store, clock := open(rt, someTime)
				s := &storetest.Sequence{
					TB: rt, Store: store, Clock: clock, Supports: storetest.Everything, Back: back,
					Draw: func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "") },
				}
				s.Run(rapid.IntRange(1, 150).Draw(rt, "groups"))
			})
		})
	}
}
