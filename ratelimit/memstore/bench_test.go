package memstore

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// everyRule returns a rule of each algorithm. The limit of the log is at most 100.
func everyRule(limit int64) map[string]ratelimit.Rule {
	return map[string]ratelimit.Rule{
		"buckets": ratelimit.Buckets(ratelimit.BucketOptions{Limit: limit, Per: time.Minute, Interval: 5 * time.Second, Span: 10 * time.Minute}),
		"log":     ratelimit.SlidingLog(min(limit, 100), time.Minute),
		"window":  ratelimit.FixedWindow(limit, time.Minute),
		"gcra":    ratelimit.GCRA(limit, time.Minute),
	}
}

func BenchmarkTake(b *testing.B) {
	for _, limit := range []int64{1, 100_000_000} {
		for name, r := range everyRule(limit) {
			b.Run(fmt.Sprintf("%s/limit=%d", name, limit), func(b *testing.B) {
				l, ctx := newLimiter(b, newStore(b, Options{}), r), context.Background()
				b.ReportAllocs()
				for b.Loop() {
					if _, err := l.Take(ctx, "192.0.2.1", 1); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkTakeKeys takes from many keys in turn, on all processors. Most takes pass.
func BenchmarkTakeKeys(b *testing.B) {
	for _, n := range []int{16 << 10, 1 << 20} {
		keys := addresses(n)
		for name, r := range everyRule(100_000_000) {
			b.Run(fmt.Sprintf("%s/%dk", name, n>>10), func(b *testing.B) {
				m := newStore(b, Options{MaxKeys: 2 << 20, MaxBytes: 8 << 30})
				takeKeys(b, newLimiter(b, m, r), keys)
			})
		}
	}
}

func addresses(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("198.%d.%d.%d", i>>16, i>>8&255, i&255)
	}
	return keys
}

func takeKeys(b *testing.B, l *ratelimit.Limiter, keys []string) {
	ctx := context.Background()
	for _, k := range keys {
		_, err := l.Take(ctx, k, 1)
		require.NoError(b, err)
	}
	var at atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for i := int(at.Add(7919)); pb.Next(); i += 7919 {
			if _, err := l.Take(ctx, keys[i&(len(keys)-1)], 1); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkNewKey measures the cost of a new key, including the growth of the table.
func BenchmarkNewKey(b *testing.B) {
	for name, r := range everyRule(10) {
		b.Run(name, func(b *testing.B) {
			m, keys := newStore(b, Options{MaxKeys: 1 << 20, MaxBytes: 8 << 30}), addresses(1<<20)
			l, ctx := newLimiter(b, m, r), context.Background()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := l.Take(ctx, keys[i&(len(keys)-1)], 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
