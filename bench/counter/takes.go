package counter

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/harness"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// takes lets the callers take units of fixed windows instead of counting. Unlike redback, it
// needs no Node.
type takes struct {
	*ours
	length time.Duration
	redis  *redis.Client
	rounds int
}

func newTakes(client *redis.Client, length time.Duration, limit int64) (*takes, error) {
	o, err := newOurs(client, ratelimit.FixedWindow(limit, time.Hour))
	return &takes{ours: o, length: length, redis: client}, err
}

// Round implements [harness.Instance]. Its only metric is the throughput.
func (t *takes) Round(ctx context.Context) (map[string]float64, error) {
	t.rounds++
	if err := t.redis.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	if err := t.prepare(ctx, fmt.Sprint("t", t.rounds), false); err != nil {
		return nil, err
	}
	s, err := t.runCallers(ctx, t.length, t.take)
	return map[string]float64{"throughput": float64(s.ops) / s.seconds}, err
}

func (t *takes) take(ctx context.Context, i int) error {
	res, err := t.limiter.Take(ctx, t.keys[i], 1)
	if err == nil && !res.Allowed {
		return fmt.Errorf("%w: denied, far below the limit", harness.ErrWrong)
	}
	return err
}
