package redisstore

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// BenchmarkOp measures the cost of an op: ns/op for its caller, server-us/op within Redis
// (cmdstat_evalsha).
func BenchmarkOp(b *testing.B) {
	w := newWorkload(b)
	for _, name := range []string{"take", "denied", "peek", "add", "count"} {
		b.Run(name, func(b *testing.B) {
			w.reset()
			for b.Loop() {
				w.run(w.ops[name])
			}
			b.ReportMetric(w.serverTime(), "server-us/op")
		})
	}
}

// BenchmarkRatios measures the cost of a longer interval and of a gap, as ratios of the
// server's time, each the median of the rounds; -benchtime=5x for five.
func BenchmarkRatios(b *testing.B) {
	w := newWorkload(b)
	var count, gap []float64
	for b.Loop() {
		count = append(count, w.round("count of 119", 0)/w.round("count of 4", 0))
		gap = append(gap, w.round("add", 119*5*time.Second)/w.round("add", 0))
	}
	b.ReportMetric(median(count), "count-119/count-4")
	b.ReportMetric(median(gap), "add-after-119/add")
}

// BenchmarkRules measures a take by each rule: for one caller, and for 64 concurrent callers
// of as many subjects or of one, which share round trips and scripts.
func BenchmarkRules(b *testing.B) {
	const subjects = 64
	w := newWorkload(b)
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
			w.reset()
			for b.Loop() {
				w.run(op)
			}
			b.ReportMetric(w.serverTime(), "server-us/op")
		})
		for _, c := range []struct {
			name     string
			subjects int64
		}{{"many", subjects}, {"hot", 1}} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				w.reset()
				var next atomic.Int64
				b.SetParallelism(subjects / runtime.GOMAXPROCS(0))
				b.RunParallel(func(pb *testing.PB) {
					op := op
					op.Key = fmt.Sprint("bench", next.Add(1)%c.subjects)
					for pb.Next() {
						if _, err := w.store.DoOne(b.Context(), op); err != nil {
							b.Error(err)
						}
					}
				})
				calls, each := w.server.Calls("evalsha")
				b.ReportMetric(float64(calls)*each/float64(b.N), "server-us/op")
			})
		}
	}
}

// workload is a Redis with one counter whose buckets are all in use.
type workload struct {
	*testing.B
	server *testhost.Redis
	client *redis.Client
	store  *Store
	now    time.Time
	ops    map[string]ratelimit.Op
}

func newWorkload(b *testing.B) *workload {
	server := testhost.StartRedis(b)
	w := &workload{B: b, server: server, client: server.Client(nil), now: time.Now().Add(-600 * time.Second)}
	w.store = newStore(b, w.client, patient)
	r := ratelimit.Buckets(perMinute(1 << 40))
	low := ratelimit.Buckets(perMinute(10))
	w.ops = map[string]ratelimit.Op{
		"take":         {Rule: r, Key: "k", N: 1, Kind: ratelimit.Take},
		"denied":       {Rule: low, Key: "k", N: 1, Kind: ratelimit.Take},
		"peek":         {Rule: r, Key: "k", N: 1, Kind: ratelimit.Peek},
		"add":          {Rule: r, Key: "k", N: 1, Kind: ratelimit.Add},
		"count":        {Rule: r, Key: "k", Kind: ratelimit.Count},
		"count of 4":   {Rule: r, Key: "k", Kind: ratelimit.Count, Interval: 4 * 5 * time.Second},
		"count of 119": {Rule: r, Key: "k", Kind: ratelimit.Count, Interval: 119 * 5 * time.Second},
	}
	w.store.clock = func() time.Time { return w.now }
	for range 120 {
		w.run(ratelimit.Op{Rule: r, Key: "k", N: 10, Kind: ratelimit.Add})
		w.now = w.now.Add(5 * time.Second)
	}
	w.store.clock = nil
	return w
}

func (w *workload) run(op ratelimit.Op) {
	_, err := w.store.DoOne(w.Context(), op)
	require.NoError(w, err)
}

func (w *workload) reset() {
	require.NoError(w, w.client.ConfigResetStat(w.Context()).Err())
}

func (w *workload) serverTime() float64 {
	_, us := w.server.Calls("evalsha")
	return us
}

// round runs an op 1000 times, gap apart by a clock of its own, and returns the
// server's microseconds for one.
func (w *workload) round(name string, gap time.Duration) float64 {
	w.store.clock = func() time.Time { return w.now }
	w.reset()
	for range 1000 {
		w.now = w.now.Add(gap)
		w.run(w.ops[name])
	}
	return w.serverTime()
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
