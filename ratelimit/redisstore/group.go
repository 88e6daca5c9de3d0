package redisstore

import (
	"context"
	"slices"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// The statuses of a group or a take, and the verdicts on the ops of a group, as the scripts say.
const (
	statusForeign  = -1
	statusOverflow = -2

	verdictDone     = 1
	verdictViolated = -1
	verdictNotTried = -2
)

// request is a group of ops and its call.
type request struct {
	call  redispipe.Call
	ops   []ratelimit.Op
	rules []*ruleArgs // of the ops
	out   []ratelimit.Result
}

// request makes the request of a group, whose results go to out.
func (s *Store) request(ops []ratelimit.Op, out []ratelimit.Result) (r request, err error) {
	r = request{ops: ops, out: out, rules: make([]*ruleArgs, len(ops))}
	script := ""
	for i := range ops {
		a := s.ruleArgs(ops[i].Rule)
		switch {
		case a == nil:
			return r, noScript(ops[i].Rule)
		case script == "":
			script = a.algorithm.name
		case script != a.algorithm.name:
			script = "mixed"
		}
		r.rules[i] = a
	}
	if len(ops) == 1 && isTake(&ops[0]) {
		r.call = s.takeCall(&ops[0], r.rules[0])
	} else {
		r.call = s.groupCall(ops, r.rules)
		r.call.Script = s.scripts.group[script]
	}
	return r, nil
}

// decode reads the reply to a request.
func (s *Store) decode(ctx context.Context, r *request, reply redispipe.Result) (err error) {
	switch {
	case reply.Err != nil:
		return s.failure(ctx, reply.Err)
	case r.call.Batch != nil:
		r.out[0], err = s.taken(&r.ops[0], r.rules[0], reply.Reply)
		return err
	}
	return r.decodeGroup(reply.Ints)
}

// groupCall makes the call of a group, as group.lua reads it.
func (s *Store) groupCall(ops []ratelimit.Op, rules []*ruleArgs) (c redispipe.Call) {
	keyNumber := func(name string) int {
		i := slices.Index(c.Keys, name)
		if i < 0 {
			i, c.Keys = len(c.Keys), append(c.Keys, name)
		}
		return i + 1
	}
	c.Args = append(make([]any, 0, 1+16*len(ops)), rules[0].now)
	for i, a := range rules {
		op, block := &ops[i], 0
		if a.block != "" {
			block = keyNumber(s.key(op.Key, a.block))
		}
		n, over, life := op.N, over(op), int64(0)
		if op.Kind == ratelimit.Refund {
			n, over, life = a.receipt(op)
		}
		c.Args = append(c.Args, op.Kind.String(), keyNumber(s.key(op.Key, a.counter)), block, n, over, life)
		c.Args = append(append(append(c.Args, a.blockArgs...), a.algorithm.name), a.args...)
	}
	return c
}

// over returns what an op counts over: buckets before the newest, or microseconds; of a take, its
// Prepaid.
func over(op *ratelimit.Op) int64 {
	d := op.Interval
	switch {
	case op.Kind == ratelimit.Take:
		return inMicroseconds(op.Prepaid)
	case op.Kind != ratelimit.Count && op.Kind != ratelimit.Add:
		return 0
	case d == 0:
		d = op.Rule.Per()
	}
	if op.Rule.Interval() > 0 {
		return buckets(d, op.Rule)
	}
	return inMicroseconds(d)
}

// receipt returns the fields of a refund's receipt. One that no charge of its counter can have
// becomes the zero receipt, which refunds nothing.
func (a *ruleArgs) receipt(op *ratelimit.Op) (n, at, life int64) {
	const exact = 1 << 53 // up to here Lua's numbers are integers
	c := &op.Receipt
	if c.Counter != a.receiptCounter(op.Key) || c.N < 1 || min(c.At, c.Generation) < 0 || max(c.N, c.At) > exact ||
		c.Generation > exact && op.Rule.Algorithm() != "gcra" {
		return 0, 0, 0
	}
	return c.N, c.At, c.Generation
}

// decodeGroup reads the integers of group.lua.
func (r *request) decodeGroup(reply []int64) error {
	if len(reply) < 2 {
		return unreadable()
	}
	now := reply[0]
	switch reply[1] {
	case statusForeign:
		return foreign(r.call.Keys...)
	case statusOverflow:
		return ratelimit.ErrOverflow
	}
	reply = reply[2:]
	for i, a := range r.rules {
		width := 3 + a.algorithm.width
		if len(reply) < width {
			return unreadable()
		}
		said := opReply{verdict: reply[0], count: reply[1], hold: reply[2], shown: shown{ints: reply[3:width], now: now}}
		r.out[i] = a.answer(&r.ops[i], said, storage.Pending(r.ops[:i], r.ops[i].Rule.Layout().ID))
		reply = reply[width:]
	}
	return nil
}

// opReply is what a script says of one op of a group.
type opReply struct {
	verdict, count, hold int64
	shown
}

// answer returns the result of an op, before which its group charges pending units to the same
// counter.
func (a *ruleArgs) answer(op *ratelimit.Op, r opReply, pending int64) (res ratelimit.Result) {
	switch {
	case op.Kind == ratelimit.Count:
		return ratelimit.Result{Allowed: true, Limit: a.limit, Count: r.count}
	case r.verdict == verdictNotTried:
		return ratelimit.Result{Limit: a.limit}
	case op.Kind == ratelimit.Peek:
		res = a.evaluate(r.shown, op.N)
	case op.Kind == ratelimit.Refund || op.Kind == ratelimit.Reset || op.Kind == ratelimit.Add && op.N == 0:
		res = a.evaluate(r.shown, 1)
		res.Count = r.count
	case r.verdict == verdictDone:
		res = a.charged(r.shown, op.Key, op.N)
		res.Count = r.count
	default:
		n := op.N + pending
		if res = a.evaluate(r.shown, n); n > a.burst { // an add of more than ever passes
			res.RetryAfter = res.ResetAfter
		}
	}
	res.Allowed, res.Violated = r.verdict == verdictDone, r.verdict == verdictViolated
	if hold := microseconds(r.hold); hold > 0 {
		res.Remaining = 0
		res.RetryAfter, res.ResetAfter = max(res.RetryAfter, hold), max(res.ResetAfter, hold)
		if res.Violated {
			res.Blocked = hold
		}
	}
	return res
}
