package redisstore

import (
	"context"
	"slices"

	"github.com/lazyreq/lazyreq/internal/redispipe"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// The scripts return a status for each key or group.
const (
	statusForeign  = -1
	statusOverflow = -2
)

// The script of a group returns a verdict for each op.
const (
	verdictDone     = 1
	verdictViolated = -1
)

// request is a group of ops and the call that runs it.
type request struct {
	call  redispipe.Call
	ops   []ratelimit.Op
	rules []*ruleArgs // of the ops
	out   []ratelimit.Result
}

// keys returns the names of the request's keys in Redis.
func (r *request) keys() []string {
	if r.call.Batch != nil {
		return []string{r.call.Key}
	}
	return r.call.Keys
}

// newRequest returns the request for a group. The results will be written to out.
func (s *Store) newRequest(ops []ratelimit.Op, out []ratelimit.Result) request {
	r := request{ops: ops, out: out, rules: make([]*ruleArgs, len(ops))}
	script := ""
	for i := range ops {
		r.rules[i] = s.ruleArgsFor(&ops[i])
		switch name := r.rules[i].algorithm.name; script {
		case name:
		case "":
			script = name
		default:
			script = "mixed"
		}
	}
	if len(ops) == 1 && sharesCall(&ops[0]) {
		r.call = s.sharedCall(&ops[0], r.rules[0])
	} else {
		r.call = s.groupCall(ops, r.rules)
		r.call.Script = s.scripts.group[script]
	}
	return r
}

// decode writes the results of a request to r.out. It returns the error of the request.
func (s *Store) decode(ctx context.Context, r *request, reply redispipe.Result) (err error) {
	switch {
	case reply.Err != nil:
		return s.wrapError(ctx, reply.Err)
	case r.call.Batch != nil:
		r.out[0], err = s.sharedResult(&r.ops[0], r.rules[0], reply.Reply)
		return err
	}
	return r.decodeGroup(reply.Ints)
}

// groupCall returns the call for a group, with arguments as group.lua reads them.
func (s *Store) groupCall(ops []ratelimit.Op, rules []*ruleArgs) (c redispipe.Call) {
	keyNumber := func(name string) int {
		i := slices.Index(c.Keys, name)
		if i < 0 {
			i, c.Keys = len(c.Keys), append(c.Keys, name)
		}
		return i + 1
	}
	c.Args = append(make([]any, 0, 2+15*len(ops)), rules[0].now, ops[0].Kind.String())
	for i, a := range rules {
		op, block := &ops[i], 0
		if a.block != "" {
			block = keyNumber(s.counterKey(op.Key, a.block))
		}
		n, at, generation := op.N, layout.Micros(op.Prepaid), int64(0)
		if op.Kind == ratelimit.Refund {
			n, at, generation = a.receiptArgs(op)
		}
		c.Args = append(c.Args, keyNumber(s.counterKey(op.Key, a.counter)), block, n, at, generation)
		c.Args = append(append(append(c.Args, a.blockArgs...), a.algorithm.name), a.args...)
	}
	return c
}

// receiptArgs returns the fields of a refund's receipt. If the receipt cannot belong to a charge of this counter, it returns
// zeros, which refund nothing.
func (a *ruleArgs) receiptArgs(op *ratelimit.Op) (n, at, generation int64) {
	c := &op.Receipt
	if c.Counter != fnv1a(a.hash, op.Key) || c.N < 1 || min(c.At, c.Generation) < 0 || max(c.N, c.At) > layout.MaxCount ||
		c.Generation > layout.MaxCount && a.Algorithm != storage.GCRA {
		return 0, 0, 0
	}
	return c.N, c.At, c.Generation
}

// decodeGroup writes the results in the reply of group.lua to r.out.
func (r *request) decodeGroup(reply []int64) error {
	if len(reply) < 2 {
		return unreadableError()
	}
	now := reply[0]
	switch reply[1] {
	case statusForeign:
		return keyTypeError(r.call.Keys...)
	case statusOverflow:
		return ratelimit.ErrOverflow
	}
	reply = reply[2:]
	for i, a := range r.rules {
		width := 2 + a.algorithm.width
		if len(reply) < width {
			return unreadableError()
		}
		op := opReply{verdict: reply[0], hold: reply[1], counterReply: counterReply{ints: reply[2:width], now: now}}
		r.out[i] = a.result(&r.ops[i], op, storage.Pending(r.ops[:i], a.ID))
		reply = reply[width:]
	}
	return nil
}

// opReply is the part of a group's reply for one of the ops.
type opReply struct {
	verdict, hold int64
	counterReply
}

// result returns the result of an op. The takes before the op in its group charge pending units to the same counter.
func (a *ruleArgs) result(op *ratelimit.Op, r opReply, pending int64) (res ratelimit.Result) {
	switch {
	case op.Kind == ratelimit.Refund || op.Kind == ratelimit.Reset:
		res = a.peekResult(r.counterReply, 1)
	case op.Kind == ratelimit.Take && r.verdict == verdictDone:
		res = a.chargedResult(r.counterReply, op.Key, op.N)
	default:
		res = a.peekResult(r.counterReply, op.N+pending)
	}
	res.Allowed, res.Violated = r.verdict == verdictDone, r.verdict == verdictViolated
	if hold := layout.Duration(r.hold); hold > 0 && op.Kind != ratelimit.Add {
		res.Remaining = 0
		res.RetryAfter, res.ResetAfter = max(res.RetryAfter, hold), max(res.ResetAfter, hold)
		if res.Violated {
			res.Blocked = hold
		}
	}
	return res
}
