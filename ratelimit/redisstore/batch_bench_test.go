package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// BenchmarkMany compares concurrent takes of 16384 subjects with the same takes in a script
// call each. It reports medians of rounds that alternate; -benchtime=5x runs five.
// server-us/op is the time of EVALSHA in Redis, and the two of cpu are processor time.
func BenchmarkMany(b *testing.B) {
	const each = 40_000
	server := testhost.StartRedis(b)
	client := server.Client(nil)
	joined, plain := newStore(b, client, patient), newStore(b, client, Options{Timeout: patient.Timeout, BatchSize: 1})
	for _, name := range []string{"buckets", "window", "gcra"} {
		r := benchRules[name]
		for _, callers := range []int{8, 64, 256} {
			b.Run(fmt.Sprint(name, "/", callers), func(b *testing.B) {
				var ratio, rate, usec, size, cpuUs, goUs []float64
				for b.Loop() {
					p := takesAtOnce(b, plain, r, callers, each/2)
					require.NoError(b, client.ConfigResetStat(b.Context()).Err())
					c0, g0 := cpus(b, client)
					j := takesAtOnce(b, joined, r, callers, each)
					c1, g1 := cpus(b, client)
					cpuUs, goUs = append(cpuUs, (c1-c0)*1e6/each), append(goUs, (g1-g0)*1e6/each)
					calls, us := server.Calls("evalsha")
					ratio, rate = append(ratio, j/p), append(rate, j)
					usec, size = append(usec, us*float64(calls)/each), append(size, each/float64(calls))
				}
				b.ReportMetric(median(ratio), "x-plain")
				b.ReportMetric(median(rate)/1000, "k/s")
				b.ReportMetric(median(usec), "server-us/op")
				b.ReportMetric(median(cpuUs), "redis-cpu-us/op")
				b.ReportMetric(median(goUs), "go-cpu-us/op")
				b.ReportMetric(median(size), "takes/call")
			})
		}
	}
}

// cpus returns the seconds of processor time that Redis and this process have used.
func cpus(b *testing.B, c *redis.Client) (server, own float64) {
	info, err := c.Info(b.Context(), "cpu").Result()
	require.NoError(b, err)
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			seconds, err := strconv.ParseFloat(value, 64)
			require.NoError(b, err)
			server += seconds
		}
	}
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return server, time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

var benchRules = map[string]ratelimit.Rule{
	"buckets": ratelimit.Buckets(perMinute(1 << 40)),
	"window":  ratelimit.FixedWindow(1<<40, time.Minute),
	"gcra":    ratelimit.GCRA(1<<20, time.Second),
}

var benchKeys = func() (keys [1 << 14]string) {
	for i := range keys {
		keys[i] = fmt.Sprint("192.0.2.", i)
	}
	return keys
}()

// takesAtOnce returns the number of takes a second by n callers, each of which takes sequentially.
func takesAtOnce(b *testing.B, s *Store, r ratelimit.Rule, callers, takes int) float64 {
	ctx, begun := context.Background(), time.Now()
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			op := ratelimit.Op{Rule: r, N: 1, Kind: ratelimit.Take}
			for i := range takes / callers {
				op.Key = benchKeys[(c*1009+i*17)&(len(benchKeys)-1)]
				if _, err := s.DoOne(ctx, op); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(takes) / time.Since(begun).Seconds()
}
