package redisstore

import (
	"context"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// sharesCall reports whether an op that is a group by itself shares a script call with takes of other
// keys. A take does, unless it is prepaid or its rule has a block, which is a second key.
func sharesCall(op *ratelimit.Op) bool {
	return op.Kind == ratelimit.Take && op.Prepaid == 0 && op.Rule.Block().After == 0
}

// take runs a take for which sharesCall is true.
func (s *Store) take(ctx context.Context, op *ratelimit.Op) (ratelimit.Result, error) {
	a := s.ruleArgsFor(op.Rule)
	if a == nil {
		return ratelimit.Result{}, noScriptError(op.Rule)
	}
	reply, err := s.pipe.Run(ctx, s.timeout, s.takeCall(op, a))
	if err != nil {
		return ratelimit.Result{}, s.wrapError(ctx, err)
	}
	return s.takeResult(op, a, reply)
}

// takeCall makes the call of a take, in the form that takes.lua reads.
func (s *Store) takeCall(op *ratelimit.Op, a *ruleArgs) redispipe.Call {
	return redispipe.Call{Batch: &a.takes, Key: s.counterKey(op.Key, a.counter), N: op.N}
}

// takeResult decodes the reply to a take. Of equal takes, the first ones pass.
func (s *Store) takeResult(op *ratelimit.Op, a *ruleArgs, reply redispipe.Reply) (ratelimit.Result, error) {
	passed, counter := reply.Ints[0], counterReply{ints: reply.Ints[1:], now: reply.Common}
	switch passed {
	case statusForeign:
		return ratelimit.Result{}, keyTypeError(s.counterKey(op.Key, a.counter))
	case statusOverflow:
		return ratelimit.Result{}, ratelimit.ErrOverflow
	}
	if i := int64(reply.Index); i < passed {
		counter.later = (passed - 1 - i) * op.N
		return a.chargedResult(counter, op.Key, op.N), nil
	}
	res := a.peekResult(counter, op.N)
	res.Allowed, res.Violated = false, true
	return res, nil
}
