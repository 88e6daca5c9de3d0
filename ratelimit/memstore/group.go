package memstore

import (
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// group runs a group of ops on a shard, which is locked. If the group is denied or fails, it changes nothing except the
// number of denials that a Block counts.
type group struct {
	*shard
	ops []ratelimit.Op
	out []ratelimit.Result // of the ops; until takes have been checked, only Violated is set
	key uint64             // the hash of the ops' key
	now int64
	// wait is the time until there may be room, if the shard is full and denies new counters.
	wait int64
}

func (g *group) do() error {
	op, out := &g.ops[0], &g.out[0]
	r := ruleFor(op)
	switch op.Kind {
	case ratelimit.Take:
		return g.take()
	case ratelimit.Add:
		return g.add(op, out)
	case ratelimit.Refund:
		for i := range g.ops {
			g.out[i] = g.refund(&g.ops[i])
		}
	case ratelimit.Peek:
		*out = g.peek(r, op.N)
		out.Violated, out.Blocked = !out.Allowed, layout.Duration(g.blockTimeLeft(r))
	case ratelimit.Count:
		*out = ratelimit.Result{Allowed: true, Limit: r.Limit, Count: g.count(op)}
	case ratelimit.Reset:
		if r.BlockAfter > 0 {
			g.forget(r.blockHash(g.key))
		}
		g.forget(r.hash(g.key))
		*out = r.freshResult()
	}
	return nil
}

// take checks all takes, makes room for all charges, and then charges.
func (g *group) take() error {
	denied, err := g.check()
	if err == nil && !denied {
		denied, err = g.makeRoom()
	}
	if err != nil {
		return err
	}
	for i := range g.ops {
		if denied {
			g.deny(i)
		} else {
			g.out[i] = g.charge(&g.ops[i])
		}
	}
	return nil
}

// check reports whether a take is denied. A take must pass together with the takes before it in the group. If no take is
// denied but a counter cannot hold the units, check returns ErrOverflow.
func (g *group) check() (denied bool, err error) {
	for i := range g.ops {
		r := ruleFor(&g.ops[i])
		allowed, fit := true, true
		if s := g.find(r); s.entry != nil {
			allowed, fit = r.algorithm().passes(s, r, g.ops[i].N+storage.Pending(g.ops[:i], r.ID), g.now)
		}
		switch {
		case !allowed || g.blockTimeLeft(r) > 0:
			g.out[i].Violated, denied = true, true
		case !fit:
			err = ratelimit.ErrOverflow
		}
	}
	if denied {
		return true, nil
	}
	return false, err
}

// add charges units, even beyond the limit or during a Block.
func (g *group) add(op *ratelimit.Op, out *ratelimit.Result) error {
	r := ruleFor(op)
	if op.N == 0 {
		*out = g.evaluate(r, 1)
	} else {
		if s := g.find(r); s.entry != nil {
			if _, fit := r.algorithm().passes(s, r, op.N, g.now); !fit {
				return ratelimit.ErrOverflow
			}
		}
		if _, err := g.makeRoom(); err != nil {
			return err
		}
		*out = g.charge(op)
	}
	out.Allowed, out.Count = true, g.count(op)
	return nil
}

// find returns the state of r's counter for the key. The state's entry is nil if the counter does not exist.
func (g *group) find(r *rule) state {
	e := g.table.find(r.hash(g.key))
	if e == nil {
		return state{}
	}
	return g.state(e)
}

// evaluate returns the result that a take of n units would have if there were no Block.
func (g *group) evaluate(r *rule, n int64) (res ratelimit.Result) {
	s := g.find(r)
	if s.entry == nil {
		return r.freshResult()
	}
	r.check(r.algorithm(), s, n, g.now, &res)
	return res
}

// peek returns the result that a take of n units would have.
func (g *group) peek(r *rule, n int64) ratelimit.Result {
	res := g.evaluate(r, n)
	applyBlock(&res, g.blockTimeLeft(r))
	return res
}

// applyBlock changes a result if no take can pass for the time left.
func applyBlock(r *ratelimit.Result, left int64) {
	if left <= 0 {
		return
	}
	r.Allowed, r.Remaining = false, 0
	r.RetryAfter = max(r.RetryAfter, layout.Duration(left))
	r.ResetAfter = max(r.ResetAfter, layout.Duration(left))
}

// deny sets the result of a take in a denied group.
func (g *group) deny(i int) {
	out, violated := &g.out[i], g.out[i].Violated
	r := ruleFor(&g.ops[i])
	*out = g.evaluate(r, g.ops[i].N+storage.Pending(g.ops[:i], r.ID))
	switch {
	case !violated:
	case !out.Allowed || g.blockTimeLeft(r) > 0:
		left := g.countDenial(r)
		applyBlock(out, left)
		out.Blocked = layout.Duration(left)
	default: // denied because the shard is full
		applyBlock(out, g.wait)
	}
	out.Allowed, out.Violated = false, violated
}

// A Block's denials are counted in an entry of their own:
//
//	until  the end of the block or, before the block begins, the end of the Per in which denials are counted
//	a      the number of denials; from BlockAfter on, there is a block

// blockTimeLeft returns how long r still blocks the key. The result is 0 or less if there is no block.
func (g *group) blockTimeLeft(r *rule) int64 {
	if r.BlockAfter == 0 {
		return 0
	}
	e := g.table.find(r.blockHash(g.key))
	if e == nil || e.a < r.BlockAfter {
		return 0
	}
	return e.until - g.now
}

// countDenial counts a denial and returns how long the block then lasts. A denial does not prolong a block. If there is no
// room for the entry, the denial is not counted.
func (g *group) countDenial(r *rule) int64 {
	if r.BlockAfter == 0 {
		return 0
	}
	hash := r.blockHash(g.key)
	e := g.table.find(hash)
	if e == nil {
		if e = g.insert(hash); e == nil {
			return 0
		}
	}
	if g.now >= e.until {
		e.a, e.until = 0, g.now+r.Per
	}
	if e.a++; e.a == r.BlockAfter {
		e.until = g.now + r.BlockFor
	}
	return g.blockTimeLeft(r)
}

// charge charges the op's units. The counter must exist and have room. The result says when the next unit can pass.
func (g *group) charge(op *ratelimit.Op) (res ratelimit.Result) {
	r := ruleFor(op)
	s, a := g.find(r), r.algorithm()
	res.Receipt = a.charge(s, r, op.N, g.now, g.generations, layout.Micros(op.Prepaid))
	res.Receipt.Counter = s.hash
	r.check(a, s, 1, g.now, &res)
	res.Allowed = true
	return res
}

func (g *group) count(op *ratelimit.Op) int64 {
	r := ruleFor(op)
	s, interval := g.find(r), r.Per
	if s.entry == nil {
		return 0
	}
	if op.Interval > 0 {
		interval = layout.Micros(op.Interval)
	}
	return r.algorithm().count(s, r, interval, g.now)
}

func (g *group) refund(op *ratelimit.Op) ratelimit.Result {
	r := ruleFor(op)
	s := g.find(r)
	done := s.entry != nil && op.Receipt.Counter == s.hash && r.algorithm().refund(s, r, op.Receipt, g.now, g.generations)
	res := g.peek(r, 1)
	res.Allowed = done
	return res
}

// hash returns the hash of r's counter for the key with a hash.
func (r *rule) hash(key uint64) uint64 {
	h := (key ^ r.ID) &^ 1
	if r.hasBlock() {
		return h | 1
	}
	return max(h, 2) // 0 is an empty slot
}

// blockHash returns the hash of the entry that counts r's denials of a key.
func (r *rule) blockHash(key uint64) uint64 {
	const odd = 0x9e3779b97f4a7c15
	which := ((r.ID^uint64(r.BlockAfter))*odd ^ uint64(r.BlockFor)) * odd
	return max((key^which)&^1, 2)
}
