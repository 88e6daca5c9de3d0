package decisions

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/redisinfo"
	"github.com/lazyreq/lazyreq/bench/rig"
)

// instance is a contender in a case.
type instance struct {
	Contender
	load   load
	length time.Duration
	redis  *redis.Client // for questions about it
	client Client
	wide   Take
	narrow Take
	rounds int
}

func openInstance(c Contender, addr string, client *redis.Client, l load, length time.Duration) (*instance, error) {
	in := &instance{Contender: c, load: l, length: length, redis: client}
	var err error
	if in.client, err = c.Open(addr); err != nil {
		return nil, err
	}
	var err2 error
	in.wide, err = in.client.Limiter(wide)
	in.narrow, err2 = in.client.Limiter(narrow)
	if err = errors.Join(err, err2); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// Close implements [harness.Instance].
func (in *instance) Close() error { return in.client.Close() }

// Round implements [harness.Instance].
func (in *instance) Round(ctx context.Context) (map[string]float64, error) {
	in.rounds++
	if err := in.redis.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	keys := in.load.keyNames("wide", in.rounds)
	in.runCallers(ctx, keys, in.length/8) // connections, scripts, keys
	values, err := in.measure(ctx, keys)
	if err != nil {
		return values, err
	}
	return values, in.checkQuota(ctx)
}

// measure runs callers for as long as a round is.
func (in *instance) measure(ctx context.Context, keys []string) (map[string]float64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used, cpu, err := in.usage(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	done := in.runCallers(ctx, keys, in.length)
	seconds := time.Since(began).Seconds()
	use, cpuAfter, err := in.usage(ctx)
	if err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&after)
	n := float64(done.decided)
	if n == 0 {
		return nil, errors.Join(fmt.Errorf("%w: no decision", harness.ErrWrong), done.checkNoneDenied(ctx))
	}
	values := map[string]float64{
		"throughput":                  n / seconds,
		"allocations per decision":    float64(after.Mallocs-before.Mallocs) / n,
		"redis commands per decision": float64(use.Sum(in.sends)-used.Sum(in.sends)) / n,
		"redis cpu per decision":      (use.CPU - used.CPU).Seconds() * 1e6 / n,
		"network bytes per decision":  float64(use.Bytes-used.Bytes) / n,
		"client cpu per decision":     (cpuAfter - cpu).Seconds() * 1e6 / n,
	}
	if in.load.timed {
		done.addLatenciesTo(values)
	}
	return values, done.checkNoneDenied(ctx)
}

// usage returns the counters of Redis so far, and the processor time of this process.
func (in *instance) usage(ctx context.Context) (redisinfo.Info, time.Duration, error) {
	cpu := rig.ProcessorTime()
	info, err := redisinfo.Read(ctx, in.redis)
	return info, cpu, err
}

// runCallers has callers take for so long.
func (in *instance) runCallers(ctx context.Context, keys []string, length time.Duration) *tally {
	var over atomic.Bool
	defer time.AfterFunc(length, func() { over.Store(true) }).Stop()
	var mu sync.Mutex
	var sum tally
	var callers sync.WaitGroup
	for i := range in.load.callers {
		callers.Go(func() {
			t := in.runCaller(ctx, keys, i, &over)
			mu.Lock()
			defer mu.Unlock()
			sum.add(t)
		})
	}
	callers.Wait()
	return &sum
}

// runCaller takes of one key after the other, until it is over. Callers begin far from each
// other.
func (in *instance) runCaller(ctx context.Context, keys []string, number int, over *atomic.Bool) (t tally) {
	next := number * len(keys) / in.load.callers
	for !over.Load() && ctx.Err() == nil {
		var began time.Time
		if in.load.timed {
			began = time.Now()
		}
		d, err := in.wide(ctx, keys[next], 1)
		if in.load.timed {
			t.took = append(t.took, time.Since(began))
		}
		t.count(d.Allowed, err)
		if next++; next == len(keys) {
			next = 0
		}
	}
	return t
}
