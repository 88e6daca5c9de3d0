package redisstore

import (
	"context"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// isTake reports whether an op, if it is a group, is a take that shares a script call with takes
// of other keys: one that is not charged ahead, by a rule without a block, which is another key.
func isTake(op *ratelimit.Op) bool {
	return op.Kind == ratelimit.Take && op.Prepaid == 0 && op.Rule.Block().After == 0
}

// take runs such a take.
func (s *Store) take(ctx context.Context, op *ratelimit.Op) (ratelimit.Result, error) {
	a := s.ruleArgs(op.Rule)
	if a == nil {
		return ratelimit.Result{}, noScript(op.Rule)
	}
	reply, err := s.pipe.Run(ctx, s.timeout, s.takeCall(op, a))
	if err != nil {
		return ratelimit.Result{}, s.failure(ctx, err)
	}
	return s.taken(op, a, reply)
}

// takeCall makes the call of a take, as takes.lua reads it.
func (s *Store) takeCall(op *ratelimit.Op, a *ruleArgs) redispipe.Call {
	return redispipe.Call{Batch: &a.takes, Key: s.key(op.Key, a.counter), N: op.N}
}

// taken returns what a take came to: of equal ones, the first so many pass.
func (s *Store) taken(op *ratelimit.Op, a *ruleArgs, reply redispipe.Reply) (ratelimit.Result, error) {
	passed, view := reply.Ints[0], shown{ints: reply.Ints[1:], now: reply.Common}
	switch passed {
	case statusForeign:
		return ratelimit.Result{}, foreign(s.key(op.Key, a.counter))
	case statusOverflow:
		return ratelimit.Result{}, ratelimit.ErrOverflow
	}
	if i := int64(reply.Index); i < passed {
		view.later = (passed - 1 - i) * op.N
		return a.charged(view, op.Key, op.N), nil
	}
	res := a.evaluate(view, op.N)
	res.Allowed, res.Violated = false, true
	return res, nil
}
