package redisstore

import (
	"context"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

var _ ratelimit.ManyTaker = (*Store)(nil)

// TakeMany does many equal takes as [ratelimit.ManyTaker] says, at the cost of one,
// however many they are. Its errors are those of Do.
func (s *Store) TakeMany(ctx context.Context, op ratelimit.Op, times int) (ratelimit.Series, error) {
	if ctx.Err() != nil {
		return ratelimit.Series{}, context.Cause(ctx)
	}
	if err := ratelimit.ValidateMany(&op, times); err != nil {
		return ratelimit.Series{}, err
	}
	if op.Rule.Block().After > 0 {
		return s.takeBlocked(ctx, &op, times)
	}
	return s.take(ctx, &op, times)
}

// take does equal takes by a rule without a block.
func (s *Store) take(ctx context.Context, op *ratelimit.Op, times int) (ratelimit.Series, error) {
	t := s.tell(op.Rule)
	key := s.key(op.Key, t.counter)
	c := redispipe.Call{Script: s.scripts[t.takes], Head: t.head, Keys: []string{key}}
	switch {
	case times > 1:
		c.Mode, c.Numbers = 2, []int64{op.N, int64(times)}
	case op.N > 1:
		c.Mode, c.Numbers = 1, []int64{op.N}
	}
	reply, err := s.pipe.Run(ctx, c)
	if err != nil {
		return ratelimit.Series{}, failure(ctx, err)
	}
	return t.series(reply.Text, op.N, key)
}

// manyTold is the script's result of equal takes by a rule with a block.
const manyTold = 9

func (s *Store) takeBlocked(ctx context.Context, op *ratelimit.Op, times int) (ratelimit.Series, error) {
	t := s.tell(op.Rule)
	reply, err := s.pipe.Run(ctx, redispipe.Call{
		Script:  s.scripts[op.Rule.Algorithm()],
		Keys:    []string{s.key(op.Key, t.counter), s.key(op.Key, t.block)},
		Args:    []any{"many", t.head, op.N, times},
		Replies: manyTold,
	})
	if err != nil {
		return ratelimit.Series{}, failure(ctx, err)
	}
	a := reply.Ints
	switch a[0] {
	case overflow:
		return ratelimit.Series{}, ratelimit.ErrOverflow
	case foreign:
		return ratelimit.Series{}, isForeign(s.key(op.Key, t.counter), s.key(op.Key, t.block))
	}
	last := ratelimit.Result{Allowed: true, Limit: t.limit, Remaining: a[1], ResetAfter: microseconds(a[4])}
	series := ratelimit.Series{Passed: int(a[0]), Denied: violated(last, microseconds(a[3])), Free: int(a[7]), Hold: microseconds(a[8])}
	last.RetryAfter = microseconds(a[2])
	last.Receipt = ratelimit.Receipt{N: op.N, At: a[5], Life: a[6]}
	series.Last = last
	if op.Rule.Algorithm() == "gcra" {
		series.Raise = op.N * t.per
	}
	return series, nil
}
