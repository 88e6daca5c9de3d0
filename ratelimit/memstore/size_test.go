package memstore

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// TestMemoryTakesDocumentedBytes measures the memory of each key, and compares the total with Store.Bytes.
func TestMemoryTakesDocumentedBytes(t *testing.T) {
	const n = 100_000
	keys := addresses(1 << 17)[:n]
	for _, c := range []struct {
		name  string
		rule  ratelimit.Rule
		takes int
		most  float64 // bytes for each key
	}{
		{"gcra", ratelimit.GCRA(1000, time.Minute), 1, 64},
		{"window", ratelimit.FixedWindow(1000, time.Minute), 1, 64},
		{"buckets", ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1000}), 1, 8 * (120 + 4)},
		{"20 buckets", ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1000, Span: 100 * time.Second}), 1, 8 * (20 + 4)},
		{"log", ratelimit.SlidingLog(1000, time.Minute), 100, 16 * 100},
		{"log of a day", ratelimit.SlidingLog(1000, 24*time.Hour), 100, 16 * 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHand()
			before := heap()
			m := newStore(t, Options{MaxKeys: 2 * n, MaxBytes: 1 << 30, Clock: h.clock})
			keys := keys
			if c.takes > 1 {
				keys = keys[:n/c.takes*5]
			}
			for range c.takes {
				h.advance(time.Millisecond)
				for _, key := range keys {
					take(t, m, c.rule, key, 1)
				}
			}
			require.Equal(t, len(keys), m.Len())
			took, says := float64(heap()-before), float64(m.Bytes())
			require.LessOrEqual(t, took/float64(len(keys)), c.most)
			require.InEpsilon(t, took, says, 0.1)
			runtime.KeepAlive(m)
		})
	}
}

// heap returns the size of the heap after a garbage collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

func TestTakeOnAKnownKeyDoesNotAllocate(t *testing.T) {
	ctx := context.Background()
	for name, r := range everyRule(100) {
		t.Run(name, func(t *testing.T) {
			h := newHand()
			l := newLimiter(t, newStore(t, Options{Clock: h.clock}), r)
			take := func() {
				if _, err := l.Take(ctx, "k", 1); err != nil {
					t.Fatal(err)
				}
			}
			for range 100 { // until a log no longer grows
				h.advance(time.Microsecond)
				take()
			}
			require.Zero(t, testing.AllocsPerRun(1000, take), "denied")
			require.Zero(t, testing.AllocsPerRun(1000, func() {
				h.advance(time.Second)
				take()
			}), "allowed and denied")
			require.Zero(t, testing.AllocsPerRun(100, func() {
				if _, err := l.Add(ctx, "k", 1); err != nil {
					t.Fatal(err)
				}
			}), "Add")
		})
	}
}

// TestNewKeyDoesNotAllocate checks that new keys allocate only when a table or an arena grows.
func TestNewKeyDoesNotAllocate(t *testing.T) {
	ctx, keys := context.Background(), addresses(1<<15)
	for name, r := range everyRule(100) {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, newStore(t, Options{}), r)
			i := 0
			take := func() {
				if _, err := l.Take(ctx, keys[i], 1); err != nil {
					t.Fatal(err)
				}
				i++
			}
			for range 1 << 14 {
				take()
			}
			require.Less(t, testing.AllocsPerRun(1<<14-1, take), 1.0/8)
		})
	}
}
