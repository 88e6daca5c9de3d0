package redisstore

import (
	"context"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/gcra"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// sharesCall reports whether an op that is a group by itself can share a script call with ops on other keys. A prepaid take
// cannot, nor an op with a block, which needs a second key.
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

// sharedCall makes the call of an op as each.lua reads it.
func (s *Store) sharedCall(op *ratelimit.Op, a *ruleArgs) redispipe.Call {
	n := op.N
	if op.Kind == ratelimit.Count {
		n = 1
	}
	return redispipe.Call{Batch: &a.batches[op.Kind], Key: s.counterKey(op.Key, a.counter), N: n}
}

// sharedResult decodes the reply to an op. Of equal takes and adds, the first ones pass.
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

// addResult returns the result of one of several equal adds. The first ones were charged.
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

// counterReply is a script's report about a counter after an op.
type counterReply struct {
	ints    []int64 // the algorithm's report, see its Lua file
	now     int64   // the time in microseconds
	later   int64   // units that equal ops of the same call charged after the op
	charged bool    // the op charged units
}

// quota is the rest of a counter's quota after an op: the units that pass now, and the microseconds until n units pass and
// until the quota is full.
type quota struct {
	remaining, retry, reset int64
	at, generation          int64 // of the receipt
}

// quotaFunc computes the rest of a quota from a report.
type quotaFunc func(a *ruleArgs, c counterReply, n int64) quota

func windowQuota(a *ruleArgs, c counterReply, n int64) (q quota) {
	used, ends := c.ints[0]-c.later, c.ints[1]
	q.remaining, q.at = max(0, a.Limit-used), ends
	if n > q.remaining {
		q.retry = ends - c.now
	}
	if used > 0 {
		q.reset = ends - c.now
	}
	return q
}

func gcraQuota(a *ruleArgs, c counterReply, n int64) (q quota) {
	r := gcra.Rule{Limit: a.Limit, Burst: a.Burst, Per: a.Per}
	level, at := c.ints[0]-c.later*a.Per, c.ints[1]
	q.remaining, q.retry, q.reset = r.Check(r.Level(at, level, c.now), max(0, at-c.now), n)
	q.at, q.generation = at, level
	return q
}

// quotaFromTimes is the quotaFunc of the algorithms whose reports contain the times.
func quotaFromTimes(a *ruleArgs, c counterReply, n int64) (q quota) {
	next, retry, reset := c.ints[1], c.ints[2], c.ints[3]
	if c.charged {
		retry = next
	}
	q.remaining, q.at = max(0, a.Limit-c.ints[0]+c.later), c.ints[4]
	if n > q.remaining {
		q.retry = retry - c.now
	}
	if reset > 0 {
		q.reset = reset - c.now
	}
	if len(c.ints) > 5 {
		q.generation = c.ints[5]
	}
	return q
}

// chargedResult returns the result of an op that charged n units to key.
func (a *ruleArgs) chargedResult(c counterReply, key string, n int64) ratelimit.Result {
	c.charged = true
	q := a.algorithm.quota(a, c, 1)
	res := a.quotaResult(q)
	res.Allowed = true
	res.Receipt = ratelimit.Receipt{Counter: fnv1a(a.hash, key), N: n, At: q.at, Generation: q.generation}
	return res
}

// peekResult returns the result of a peek of n units.
func (a *ruleArgs) peekResult(c counterReply, n int64) ratelimit.Result {
	q := a.algorithm.quota(a, c, n)
	res := a.quotaResult(q)
	res.Allowed = n <= q.remaining
	return res
}

func (a *ruleArgs) quotaResult(q quota) ratelimit.Result {
	if a.Limit == 0 {
		return ratelimit.Result{}
	}
	return ratelimit.Result{
		Limit: a.Limit, Remaining: q.remaining, RetryAfter: layout.Duration(q.retry), ResetAfter: layout.Duration(q.reset),
	}
}
