package redisstore

import (
	"context"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// sharesCall reports whether an op that is a group by itself can share a script call with ops on other keys. A prepaid take
// cannot. An op whose rule has a block cannot either, because it needs a second key.
func sharesCall(op *ratelimit.Op) bool {
	switch op.Kind {
	case ratelimit.Add, ratelimit.Count:
		return true
	case ratelimit.Take, ratelimit.Peek:
		return op.Prepaid == 0 && op.Rule.Layout().BlockAfter == 0
	}
	return false
}

// runShared runs an op for which sharesCall is true.
func (s *Store) runShared(ctx context.Context, op *ratelimit.Op) (ratelimit.Result, error) {
	a := s.ruleArgsFor(op)
	reply, err := s.pipe.Run(ctx, s.timeout, s.sharedCall(op, a))
	if err != nil {
		return ratelimit.Result{}, s.wrapError(ctx, err)
	}
	return s.sharedResult(op, a, reply)
}

// sharedCall returns the call for an op, with arguments as each.lua reads them.
func (s *Store) sharedCall(op *ratelimit.Op, a *ruleArgs) redispipe.Call {
	n := op.N
	if op.Kind == ratelimit.Count {
		n = 1
	}
	return redispipe.Call{Batch: &a.batches[op.Kind], Key: s.counterKey(op.Key, a.counter), N: n}
}

// sharedResult returns the result of an op from the reply to its call. If only some of several equal ops can pass, the first
// ones pass.
func (s *Store) sharedResult(op *ratelimit.Op, a *ruleArgs, reply redispipe.Reply) (ratelimit.Result, error) {
	first, counter := reply.Ints[0], counterReply{ints: reply.Ints[1:], now: reply.Common}
	switch first {
	case statusForeign:
		return ratelimit.Result{}, keyTypeError(s.counterKey(op.Key, a.counter))
	case statusOverflow:
		return ratelimit.Result{}, ratelimit.ErrOverflow
	}
	switch op.Kind {
	case ratelimit.Count:
		return ratelimit.Result{Allowed: true, Limit: a.Limit, Count: first}, nil
	case ratelimit.Add:
		return a.addResult(op, counter, first, int64(reply.Index))
	case ratelimit.Take:
		if index := int64(reply.Index); index < first {
			counter.later = (first - 1 - index) * op.N
			return a.chargedResult(counter, op.Key, op.N), nil
		}
	}
	res := a.peekResult(counter, op.N)
	res.Allowed = res.Allowed && op.Kind == ratelimit.Peek
	res.Violated = !res.Allowed
	return res, nil
}

// addResult returns the result of an add. charged is the number of equal adds that were charged, and index is the add's
// number among them.
func (a *ruleArgs) addResult(op *ratelimit.Op, counter counterReply, charged, index int64) (res ratelimit.Result, err error) {
	count := counter.ints[0]
	counter.ints = counter.ints[1:]
	switch {
	case index >= charged:
		return res, ratelimit.ErrOverflow
	case op.N == 0:
		res = a.peekResult(counter, 1)
		res.Allowed = true
	default:
		counter.later = (charged - 1 - index) * op.N
		res = a.chargedResult(counter, op.Key, op.N)
	}
	res.Count = count - counter.later
	return res, nil
}
