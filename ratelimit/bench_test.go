package ratelimit

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func BenchmarkTake(b *testing.B) {
	rules := map[string]Rule{
		"allowed": Must(Buckets(BucketOptions{Limit: maxCount, Per: time.Minute})),
		"denied":  Must(Buckets(BucketOptions{Limit: 1, Per: time.Minute})),
	}
	for name, r := range rules {
		b.Run(name, func(b *testing.B) {
			l, ctx := newLimiter(b, newMemory(b, MemoryOptions{}), r), context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Take(ctx, "192.0.2.1", 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTake16kKeys(b *testing.B) {
	l, ctx := newLimiter(b, newMemory(b, MemoryOptions{}), Must(Buckets(BucketOptions{Limit: 1000, Per: time.Minute}))), context.Background()
	keys := make([]string, 16<<10)
	for i := range keys {
		keys[i] = fmt.Sprintf("198.51.%d.%d", i>>8, i&255)
		_, err := l.Take(ctx, keys[i], 1)
		require.NoError(b, err)
	}
	var at atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := int(at.Add(7919)); pb.Next(); i += 7919 {
			if _, err := l.Take(ctx, keys[i%len(keys)], 1); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkCount shows that the interval costs nothing.
func BenchmarkCount(b *testing.B) {
	for _, d := range []time.Duration{20 * time.Second, 595 * time.Second} {
		b.Run(d.String(), func(b *testing.B) {
			h, ctx := newHand(), context.Background()
			l := newLimiter(b, newMemory(b, MemoryOptions{Clock: h.clock}), Must(Buckets(BucketOptions{})))
			for range 120 {
				_, err := l.Add(ctx, "k", 1)
				require.NoError(b, err)
				h.now = h.now.Add(5 * time.Second)
			}
			for b.Loop() {
				if _, err := l.Count(ctx, "k", d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAdd shows what a gap costs: up to a lap, each bucket of it begins.
func BenchmarkAdd(b *testing.B) {
	for _, gap := range []time.Duration{0, 5 * time.Second, 605 * time.Second} {
		b.Run("gap "+gap.String(), func(b *testing.B) {
			h, ctx := newHand(), context.Background()
			l := newLimiter(b, newMemory(b, MemoryOptions{Clock: h.clock}), Must(Buckets(BucketOptions{})))
			for b.Loop() {
				h.now = h.now.Add(gap)
				if _, err := l.Add(ctx, "k", 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
