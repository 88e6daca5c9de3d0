package memstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/ratelimit/storetest"
)

// TestMemoryMatchesModel looks for a short sequence of questions that the memory store
// answers differently from the model.
func TestMemoryMatchesModel(t *testing.T) {
	for name, back := range map[string]bool{"clock goes on": false, "clock goes back": true} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				clock := storetest.NewClock(time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC))
				store, err := memstore.New(memstore.Options{Clock: clock.Now})
				require.NoError(rt, err)
				s := &storetest.Sequence{
					TB: rt, Store: store, Clock: clock, Supports: storetest.Everything, Back: back,
					Draw: func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "") },
				}
				s.Run(rapid.IntRange(1, 150).Draw(rt, "groups"))
			})
		})
	}
}
