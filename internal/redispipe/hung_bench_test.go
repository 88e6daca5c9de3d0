package redispipe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

const hungTimeout = 250 * time.Millisecond

// BenchmarkHung shows by how much the slowest of 20,000 and of 100,000 callers exceeds its timeout
// while all of Redis is stopped, and how soon a call succeeds after it goes on; -benchtime=3x.
func BenchmarkHung(b *testing.B) {
	single := testhost.StartRedis(b)
	cluster := testhost.StartCluster(b)
	for _, bb := range []struct {
		name   string
		client redis.UniversalClient
		pause  func() (resume func())
	}{
		{"single", single.Client(nil), single.Pause},
		{"cluster", cluster.Client(nil), func() func() {
			var resumes []func()
			for _, m := range cluster.Masters(0) {
				resumes = append(resumes, m.Pause())
			}
			return func() {
				for _, resume := range resumes {
					resume()
				}
			}
		}},
	} {
		for _, callers := range []int{20_000, 100_000} {
			benchmarkHung(b, bb.name, bb.client, bb.pause, callers)
		}
	}
}

func benchmarkHung(b *testing.B, name string, client redis.UniversalClient, pause func() (resume func()), callers int) {
	for _, cancellable := range []bool{false, true} {
		b.Run(fmt.Sprintf("%s/callers=%d/cancellable=%v", name, callers, cancellable), func(b *testing.B) {
			p, err := open(client)
			require.NoError(b, err)
			ctx := context.Background()
			if cancellable {
				c, cancel := context.WithCancel(ctx)
				defer cancel()
				ctx = c
			}
			var over, back time.Duration
			for b.Loop() {
				callMany(ctx, p, 100)
				resume := pause()
				slowest := callMany(ctx, p, callers)
				resume()
				over = max(over, slowest-hungTimeout)
				began := time.Now()
				for incrAt(ctx, p, "k") != nil {
				}
				back = max(back, time.Since(began))
			}
			b.ReportMetric(float64(over.Milliseconds()), "ms-over")
			b.ReportMetric(float64(back.Milliseconds()), "ms-back")
		})
	}
}

var incrOne = NewIntScript("return {redis.call('INCR', KEYS[1])}")

func incrAt(ctx context.Context, p *Pipe, key string) error {
	_, err := p.Run(ctx, hungTimeout, Call{Script: incrOne, Keys: []string{key}})
	return err
}

// callMany makes calls at once, each of a key of its own, and returns how long the slowest took.
func callMany(ctx context.Context, p *Pipe, callers int) time.Duration {
	took := make([]time.Duration, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			began := time.Now()
			_ = incrAt(ctx, p, fmt.Sprint("k", i))
			took[i] = time.Since(began)
		})
	}
	wg.Wait()
	return slices.Max(took)
}

// BenchmarkOneMasterStopped shows what 48 callers get from the healthy masters of a Cluster of
// three while a third of them asks one that is stopped; -benchtime=3x.
func BenchmarkOneMasterStopped(b *testing.B) {
	c := testhost.StartCluster(b)
	p, err := open(c.Client(nil))
	require.NoError(b, err)
	keys := map[*testhost.Redis][]string{} // some of each master
	masters := c.Masters(0)
	for i := range 300 {
		key := fmt.Sprint("key", i)
		owner := c.Masters(c.Slot(key))[0]
		for _, m := range masters {
			if m.Addr == owner.Addr {
				keys[m] = append(keys[m], key)
			}
		}
	}
	stopped := masters[2]
	// load returns the calls on healthy masters per second, and how many of them failed.
	load := func() (rate float64, failed int64) {
		var done, bad atomic.Int64
		var wg sync.WaitGroup
		began := time.Now()
		for i := range 48 {
			m := masters[i%3]
			wg.Go(func() {
				for n := 0; time.Since(began) < time.Second; n++ {
					err := incrAt(b.Context(), p, keys[m][n%len(keys[m])])
					switch {
					case m == stopped:
					case err != nil:
						bad.Add(1)
					default:
						done.Add(1)
					}
				}
			})
		}
		wg.Wait()
		return float64(done.Load()) / time.Since(began).Seconds(), bad.Load()
	}
	var ratios []float64
	var failed int64
	for b.Loop() {
		before, bad := load()
		failed += bad
		resume := stopped.Pause()
		during, bad := load()
		resume()
		failed += bad
		ratios = append(ratios, during/before)
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-before")
	b.ReportMetric(float64(failed), "failed")
}
