package redisstore

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/internal/redistest"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// BenchmarkMany shows takes of many callers at once on 16384 subjects.
func BenchmarkMany(b *testing.B) {
	server := redistest.Start(b)
	client := server.Client(nil)
	keys := make([]string, 1<<14)
	for i := range keys {
		keys[i] = fmt.Sprint("192.0.2.", i)
	}
	for name, r := range map[string]ratelimit.Rule{
		"window":  ratelimit.Must(ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: 1 << 40, Per: time.Minute})),
		"gcra":    ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 1 << 20, Per: time.Second})),
		"buckets": ratelimit.Must(ratelimit.Buckets(perMinute(1 << 40))),
	} {
		for _, callers := range []int{64, 256} {
			b.Run(fmt.Sprintf("%s/%d", name, callers), func(b *testing.B) {
				s := newStore(b, client, patient)
				_ = client.ConfigResetStat(b.Context())
				var next atomic.Int64
				b.ReportAllocs()
				b.SetParallelism(callers / runtime.GOMAXPROCS(0))
				b.RunParallel(func(pb *testing.PB) {
					i := next.Add(1) * 1009
					for pb.Next() {
						i++
						op := ratelimit.Op{Rule: r, Key: keys[i&(1<<14-1)], N: 1, Kind: ratelimit.Take}
						if _, err := s.DoOne(b.Context(), op); err != nil {
							b.Error(err)
						}
					}
				})
				calls, each := server.Calls("evalsha")
				b.ReportMetric(float64(calls)*each/float64(b.N), "server-us/op")
				b.ReportMetric(float64(b.N)/float64(calls), "ops/call")
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1000, "k/s")
			})
		}
	}
}
