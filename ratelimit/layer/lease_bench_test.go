package layer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func BenchmarkLeaseMemory(b *testing.B) {
	m, err := ratelimit.NewMemory(ratelimit.MemoryOptions{})
	require.NoError(b, err)
	for _, r := range []ratelimit.Rule{
		ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 1 << 40, Per: time.Second, Burst: 1 << 33})),
		ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: 1 << 40, Per: time.Minute})),
	} {
		b.Run(r.Algorithm(), func(b *testing.B) {
			l, err := NewLease(m, LeaseOptions{})
			require.NoError(b, err)
			defer l.Close()
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					res, err := l.DoOne(b.Context(), ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take})
					if err != nil || !res.Allowed {
						b.Error(res, err)
						return
					}
				}
			})
		})
	}
}
