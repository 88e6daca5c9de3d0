package redisstore

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// BenchmarkRules measures a take with each rule: by one caller, and by 64 concurrent callers, which share round trips
// and scripts. The callers have 64 subjects or share one.
func BenchmarkRules(b *testing.B) {
	const subjects = 64
	server := testhost.StartRedis(b)
	client := server.Client(nil)
	store := newStore(b, client, patient)
	for _, r := range []ratelimit.Rule{
		ratelimit.Buckets(perMinute(1 << 40)),
		ratelimit.SlidingLog(1<<40, 100*time.Millisecond),
		ratelimit.SlidingLog(1<<40, 100*time.Millisecond).WithStream(),
		ratelimit.FixedWindow(1<<40, time.Minute),
		ratelimit.GCRA(1<<20, time.Second),
	} {
		name, _, _ := strings.Cut(counterName(r), ":")
		op := ratelimit.Op{Rule: r, Key: "bench", N: 1, Kind: ratelimit.Take}
		b.Run(name+"/alone", func(b *testing.B) {
			require.NoError(b, client.ConfigResetStat(b.Context()).Err())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := store.DoOne(b.Context(), op); err != nil {
					b.Fatal(err)
				}
			}
			_, each := server.Calls("evalsha")
			b.ReportMetric(each, "server-us/op")
		})
		for _, c := range []struct {
			name     string
			subjects int64
		}{{"many", subjects}, {"hot", 1}} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				require.NoError(b, client.ConfigResetStat(b.Context()).Err())
				b.ReportAllocs()
				var next atomic.Int64
				b.SetParallelism(subjects / runtime.GOMAXPROCS(0))
				b.RunParallel(func(pb *testing.PB) {
					op := op
					op.Key = fmt.Sprint("bench", next.Add(1)%c.subjects)
					for pb.Next() {
						if _, err := store.DoOne(b.Context(), op); err != nil {
							b.Error(err)
						}
					}
				})
				calls, each := server.Calls("evalsha")
				b.ReportMetric(float64(calls)*each/float64(b.N), "server-us/op")
			})
		}
	}
}
