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
)

// instance is a contender in a case.
type instance struct {
	contender
	load   load
	length time.Duration
	redis  *redis.Client // for questions about it
	wide   limiter
	narrow limiter
	rounds int
}

func open(c contender, addr string, client *redis.Client, l load, length time.Duration) (*instance, error) {
	in := &instance{contender: c, load: l, length: length, redis: client}
	var err error
	if in.wide, err = c.open(addr, wide); err != nil {
		return nil, err
	}
	if in.narrow, err = c.open(addr, narrow); err != nil {
		return nil, errors.Join(err, in.wide.close())
	}
	return in, nil
}

// Close implements [harness.Instance].
func (in *instance) Close() error { return errors.Join(in.wide.close(), in.narrow.close()) }

// Round implements [harness.Instance].
func (in *instance) Round(ctx context.Context) (map[string]float64, error) {
	in.rounds++
	if err := in.redis.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	keys := in.load.keys("wide", in.rounds)
	in.run(ctx, keys, in.length/8) // connections, scripts, keys
	values, err := in.measure(ctx, keys)
	if err != nil {
		return values, err
	}
	return values, in.check(ctx)
}

// measure runs callers for as long as a round is.
func (in *instance) measure(ctx context.Context, keys []string) (map[string]float64, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	used, err := in.usage(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	done := in.run(ctx, keys, in.length)
	seconds := time.Since(began).Seconds()
	use, err := in.usage(ctx)
	if err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&after)
	n := float64(done.decided)
	if n == 0 {
		return nil, errors.Join(fmt.Errorf("%w: no decision", harness.ErrWrong), done.wrong(ctx))
	}
	values := map[string]float64{
		"throughput":                  n / seconds,
		"allocations per decision":    float64(after.Mallocs-before.Mallocs) / n,
		"redis commands per decision": float64(use.commands-used.commands) / n,
		"redis cpu per decision":      (use.redis - used.redis).Seconds() * 1e6 / n,
		"client cpu per decision":     (use.client - used.client).Seconds() * 1e6 / n,
	}
	if in.load.timed {
		done.latencies(values)
	}
	return values, done.wrong(ctx)
}

// tally is what some calls came to.
type tally struct {
	decided, denied, failed int64
	err                     error // of one that failed
	took                    []time.Duration
}

// wrong says what is wrong with calls none of which should be denied.
func (t *tally) wrong(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case t.failed > 0:
		all := t.decided + t.failed
		return fmt.Errorf("%w: %.2g %% of %d calls failed: %w", harness.ErrWrong, 100*float64(t.failed)/float64(all), all, t.err)
	case t.denied > 0:
		return fmt.Errorf("%w: %d of %d takes denied, far below the limit", harness.ErrWrong, t.denied, t.decided)
	}
	return nil
}

// run has callers take for so long.
func (in *instance) run(ctx context.Context, keys []string, length time.Duration) *tally {
	var over atomic.Bool
	defer time.AfterFunc(length, func() { over.Store(true) }).Stop()
	var mu sync.Mutex
	var sum tally
	var callers sync.WaitGroup
	for i := range in.load.callers {
		callers.Go(func() {
			t := in.caller(ctx, keys, i, &over)
			mu.Lock()
			defer mu.Unlock()
			sum.add(t)
		})
	}
	callers.Wait()
	return &sum
}

// caller takes of one key after the other, until it is over. Callers begin far from each
// other.
func (in *instance) caller(ctx context.Context, keys []string, number int, over *atomic.Bool) (t tally) {
	next := number * len(keys) / in.load.callers
	for !over.Load() && ctx.Err() == nil {
		var began time.Time
		if in.load.timed {
			began = time.Now()
		}
		ok, err := in.wide.take(ctx, keys[next])
		if in.load.timed {
			t.took = append(t.took, time.Since(began))
		}
		t.count(ok, err)
		if next++; next == len(keys) {
			next = 0
		}
	}
	return t
}

func (t *tally) count(ok bool, err error) {
	switch {
	case err != nil:
		t.failed++
		t.err = err
	case !ok:
		t.denied++
		t.decided++
	default:
		t.decided++
	}
}

func (t *tally) add(o tally) {
	t.decided += o.decided
	t.denied += o.denied
	t.failed += o.failed
	t.took = append(t.took, o.took...)
	if t.err == nil {
		t.err = o.err
	}
}
