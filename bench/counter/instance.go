package counter

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/redisinfo"
)

// counter is one of those that are compared. It has fresh subjects in each round, and
// keeps count itself of what it charged, so that it can detect a wrong count.
type counter interface {
	// prepare makes the subjects, and charges them a few units each if counts need it.
	prepare(ctx context.Context, round string, charge bool) error
	// run applies load l for the given time.
	run(ctx context.Context, l load, length time.Duration) (sample, error)
	// verify compares the counts of all subjects with what was charged.
	verify(ctx context.Context) error
	// cpu is the processor time that the counter's process took so far.
	cpu() (time.Duration, error)
	Close() error
}

// sample is what a run came to.
type sample struct {
	ops     int
	seconds float64
}

// instance measures a counter in a case.
type instance struct {
	counter
	load   load
	length time.Duration
	redis  *redis.Client
	rounds int
}

// Round implements [harness.Instance].
func (in *instance) Round(ctx context.Context) (map[string]float64, error) {
	in.rounds++
	if err := in.redis.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	if err := in.prepare(ctx, fmt.Sprint("r", in.rounds), in.load.op == "count"); err != nil {
		return nil, err
	}
	before, err := in.usage(ctx)
	if err != nil {
		return nil, err
	}
	s, err := in.run(ctx, in.load, in.length)
	if err != nil {
		return nil, err
	}
	after, err := in.usage(ctx)
	if err != nil {
		return nil, err
	}
	ops := float64(s.ops)
	return map[string]float64{
		"throughput":        ops / s.seconds,
		"redis cpu per op":  (after.redis - before.redis).Seconds() * 1e6 / ops,
		"client cpu per op": (after.client - before.client).Seconds() * 1e6 / ops,
	}, in.verify(ctx)
}

// usage is processor time, of both sides.
type usage struct{ redis, client time.Duration }

func (in *instance) usage(ctx context.Context) (u usage, err error) {
	if u.client, err = in.cpu(); err != nil {
		return u, err
	}
	info, err := redisinfo.Read(ctx, in.redis)
	u.redis = info.CPU
	return u, err
}
