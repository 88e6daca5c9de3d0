package counter

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/bench/rig"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/redisstore"
)

// counting is the rule of the counters.
var counting = ratelimit.Buckets(ratelimit.BucketOptions{})

// ours is a limiter on Redis. It counts with the rule [counting].
type ours struct {
	limiter *ratelimit.Limiter
	keys    [subjects]string
	charged [subjects]atomic.Int64
	next    atomic.Int64
}

func newOurs(client *redis.Client, rule ratelimit.Rule) (*ours, error) {
	store, err := redisstore.New(client, redisstore.Options{Timeout: 5 * time.Second}) // the machine may be busy
	if err != nil {
		return nil, err
	}
	limiter, err := ratelimit.NewLimiter(store, rule)
	return &ours{limiter: limiter}, err
}

func (o *ours) prepare(ctx context.Context, round string, charge bool) error {
	for i := range o.keys {
		o.keys[i] = fmt.Sprintf("bench:%s:subject%d", round, i)
		o.charged[i].Store(0)
		if !charge {
			continue
		}
		n := int64(i%7 + 1)
		o.charged[i].Store(n)
		if _, err := o.limiter.Add(ctx, o.keys[i], n); err != nil {
			return err
		}
	}
	return nil
}

func (o *ours) run(ctx context.Context, l load, length time.Duration) (sample, error) {
	op := map[string]func(context.Context, int, time.Duration) error{
		"add": o.add, "count": o.count, "addCount": o.addCount,
	}[l.op]
	return o.runCallers(ctx, length, func(ctx context.Context, i int) error { return op(ctx, i, l.interval) })
}

// runCallers has the callers call for so long, each time with the number of the next subject.
func (o *ours) runCallers(ctx context.Context, length time.Duration, call func(context.Context, int) error) (sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var over atomic.Bool
	defer time.AfterFunc(length, func() { over.Store(true) }).Stop()

	var ops atomic.Int64
	var callers sync.WaitGroup
	began := time.Now()
	for range inFlight {
		callers.Go(func() {
			done := int64(0)
			for ; !over.Load() && ctx.Err() == nil; done++ {
				if err := call(ctx, int(o.next.Add(1)%subjects)); err != nil {
					cancel(err)
				}
			}
			ops.Add(done)
		})
	}
	callers.Wait()
	return sample{int(ops.Load()), time.Since(began).Seconds()}, context.Cause(ctx)
}

func (o *ours) add(ctx context.Context, i int, _ time.Duration) error {
	o.charged[i].Add(1)
	_, err := o.limiter.Add(ctx, o.keys[i], 1)
	return err
}

func (o *ours) count(ctx context.Context, i int, interval time.Duration) error {
	n, err := o.limiter.Count(ctx, o.keys[i], interval)
	if want := o.charged[i].Load(); err == nil && n != want {
		return fmt.Errorf("%w: count of %d, want %d", harness.ErrWrong, n, want)
	}
	return err
}

func (o *ours) addCount(ctx context.Context, i int, interval time.Duration) error {
	atLeast := o.charged[i].Add(1) - inFlight
	n, err := o.limiter.AddCount(ctx, o.keys[i], 1, interval)
	if most := o.charged[i].Load(); err == nil && (n <= atLeast || n > most) {
		return fmt.Errorf("%w: count of %d, of %d charged", harness.ErrWrong, n, most)
	}
	return err
}

func (o *ours) verify(ctx context.Context) error {
	for i, key := range o.keys {
		n, err := o.limiter.Count(ctx, key, span)
		if err != nil {
			return err
		}
		if want := o.charged[i].Load(); n != want {
			return fmt.Errorf("%w: count of %d in the end, want %d", harness.ErrWrong, n, want)
		}
	}
	return nil
}

func (o *ours) cpu() (time.Duration, error) { return rig.ProcessorTime(), nil }

func (o *ours) Close() error { return nil }
