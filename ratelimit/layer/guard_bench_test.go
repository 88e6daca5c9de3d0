package layer

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// BenchmarkDenyCache measures denied takes of one key and of many keys. It also measures allowed takes, which include
// the cost of the memory store.
func BenchmarkDenyCache(b *testing.B) {
	m, err := memstore.New(memstore.Options{})
	require.NoError(b, err)
	c, err := newDenyCache(m, DenyCacheOptions{})
	require.NoError(b, err)
	hour := ratelimit.FixedWindow(1, time.Hour)
	keys := make([]string, 16<<10)
	for i := range keys {
		keys[i] = fmt.Sprintf("198.51.%d.%d", i>>8, i&255)
		_, err := c.DoOne(context.Background(), take(hour, keys[i], 1))
		require.NoError(b, err)
	}
	denied := func(b *testing.B, keys []string) {
		l, err := ratelimit.NewLimiter(c, hour)
		require.NoError(b, err)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i += 7919 {
				res, err := l.Take(context.Background(), keys[i&(len(keys)-1)], 1)
				if err != nil || res.Allowed { // a few have found no place
					b.Error(res, err)
					return
				}
			}
		})
	}
	b.Run("hit/one", func(b *testing.B) { denied(b, keys[:1]) })
	b.Run("hit/16k", func(b *testing.B) { denied(b, keys) })
	for name, store := range map[string]ratelimit.Store{"miss": c, "store": m} {
		b.Run(name, func(b *testing.B) { passing(b, store) })
	}
}

// BenchmarkFailover measures the cost of the layer around a fast store, and of an answer without the store.
func BenchmarkFailover(b *testing.B) {
	m, err := memstore.New(memstore.Options{})
	require.NoError(b, err)
	for _, mode := range []Mode{Closed, Local} {
		f, err := newFailover(m, FailoverOptions{Mode: mode, Timeout: time.Minute})
		require.NoError(b, err)
		b.Run("up/"+mode.String(), func(b *testing.B) { passing(b, f) })
	}
	for _, mode := range []Mode{Open, Local} {
		f, err := newFailover(&failingStore{Store: m, fail: fails}, FailoverOptions{Mode: mode, Retry: time.Hour, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(b, err)
		for !f.Stats().Down {
			_, err := f.DoOne(context.Background(), take(gcra(1), "k", 1))
			require.NoError(b, err)
		}
		b.Run("down/"+mode.String(), func(b *testing.B) { passing(b, f) })
	}
}

func passing(b *testing.B, store ratelimit.Store) {
	l, err := ratelimit.NewLimiter(store, windowOf(1<<50))
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if res, err := l.Take(context.Background(), "192.0.2.1", 1); err != nil || !res.Allowed {
			b.Fatal(res, err)
		}
	}
}
