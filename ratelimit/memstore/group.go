package memstore

import (
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// group runs a group of ops on a shard, which is locked. A group that is denied or fails changes
// nothing but what a Block remembers.
type group struct {
	*shard
	ops []ratelimit.Op
	out []ratelimit.Result // one for each op; until a take is done, only Violated has a meaning
	key uint64             // hash of the ops' key
	now int64
	// wait is how long a full store has no room for the group's counters, if it denies.
	wait int64
}

func (g *group) do() error {
	op, out := &g.ops[0], &g.out[0]
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
		*out = g.peek(ruleFor(op), op.N)
		out.Violated = !out.Allowed
		out.Blocked = layout.Duration(max(0, g.blockTimeLeft(ruleFor(op))))
	case ratelimit.Count:
		*out = ratelimit.Result{Allowed: true, Limit: ruleFor(op).Limit, Count: g.count(op)}
	case ratelimit.Reset:
		g.reset(ruleFor(op))
		*out = ruleFor(op).freshResult()
	}
	return nil
}

// take runs takes: first each of them is checked, then there is room for all that is charged,
// then everything is charged.
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

// check looks for takes that are denied, together with the units that the group charges
// before them. Only a group that is not denied can be too large to count.
func (g *group) check() (denied bool, err error) {
	for i := range g.ops {
		r := ruleFor(&g.ops[i])
		allowed, fit := true, true
		if s := g.find(r); s.entry != nil {
			allowed, fit = r.passes(s, g.ops[i].N+storage.Pending(g.ops[:i], r.ID), g.now)
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

// add charges units whatever the limit and a Block.
func (g *group) add(op *ratelimit.Op, out *ratelimit.Result) error {
	r := ruleFor(op)
	if op.N == 0 {
		*out = g.evaluate(r, 1)
	} else {
		if s := g.find(r); s.entry != nil {
			if _, fit := r.passes(s, op.N, g.now); !fit {
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

// find returns the state of the key's counter of r; its entry is nil if there is none.
func (g *group) find(r *rule) state {
	e := g.table.find(r.hash(g.key))
	if e == nil {
		return state{}
	}
	return g.state(e)
}

// evaluate returns what a take of n would get from the counter alone.
func (g *group) evaluate(r *rule, n int64) (res ratelimit.Result) {
	s := g.find(r)
	if s.entry == nil {
		return r.freshResult()
	}
	r.check(s, n, g.now, &res)
	return res
}

// peek returns what a take of n would get.
func (g *group) peek(r *rule, n int64) ratelimit.Result {
	res := g.evaluate(r, n)
	applyBlock(&res, g.blockTimeLeft(r))
	return res
}

// blockTimeLeft returns how long r's block of the key lasts, 0 or less if there is none.
func (g *group) blockTimeLeft(r *rule) int64 {
	if r.BlockAfter == 0 {
		return 0
	}
	return block{}.timeLeft(g.table.find(r.blockHash(g.key)), r, g.now)
}

// applyBlock changes a result for the time left in which nothing passes.
func applyBlock(r *ratelimit.Result, left int64) {
	if left <= 0 {
		return
	}
	r.Allowed, r.Remaining = false, 0
	r.RetryAfter = max(r.RetryAfter, layout.Duration(left))
	r.ResetAfter = max(r.ResetAfter, layout.Duration(left))
}

// deny answers a take of a denied group.
func (g *group) deny(i int) {
	out, violated := &g.out[i], g.out[i].Violated
	r := ruleFor(&g.ops[i])
	*out = g.evaluate(r, g.ops[i].N+storage.Pending(g.ops[:i], r.ID))
	switch {
	case !violated:
	case !out.Allowed || g.blockTimeLeft(r) > 0:
		left := g.countDenial(r)
		applyBlock(out, left)
		out.Blocked = layout.Duration(max(0, left))
	default:
		applyBlock(out, g.wait) // only a full store denies
	}
	out.Allowed, out.Violated = false, violated
}

// countDenial counts a denial for r's block, and returns how long it lasts, as blocked does. A
// store that is full and denies what is new doesn't count denials either.
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
	return block{}.countDenial(e, r, g.now)
}

// charge charges the op. The rest of its result is for the next unit.
func (g *group) charge(op *ratelimit.Op) (res ratelimit.Result) {
	r := ruleFor(op)
	s := g.find(r)
	res.Receipt = r.charge(s, op.N, g.now, storage.Micros(op.Prepaid))
	res.Receipt.Counter = s.hash
	r.check(s, 1, g.now, &res)
	res.Allowed = true
	return res
}

func (g *group) count(op *ratelimit.Op) int64 {
	r := ruleFor(op)
	s := g.find(r)
	if s.entry == nil {
		return 0
	}
	return r.count(s, interval(op), g.now)
}

func (g *group) refund(op *ratelimit.Op) ratelimit.Result {
	r := ruleFor(op)
	s := g.find(r)
	done := s.entry != nil && op.Receipt.Counter == s.hash && r.refund(s, op.Receipt, g.now)
	res := g.peek(r, 1)
	res.Allowed = done
	return res
}

// reset forgets a counter and its block.
func (g *group) reset(r *rule) {
	if r.BlockAfter > 0 {
		g.forget(r.blockHash(g.key))
	}
	g.forget(r.hash(g.key))
}

// interval returns the interval that the op counts over, in microseconds.
func interval(op *ratelimit.Op) int64 {
	if op.Interval == 0 {
		return ruleFor(op).Per
	}
	return storage.Micros(op.Interval)
}

// hash returns the hash of the key's counter of r, from that of the key.
func (r *rule) hash(key uint64) uint64 {
	h := (key ^ r.ID) &^ 1
	if r.hasBlock() {
		return h | 1
	}
	return max(h, 2) // 0 is a gap
}

// blockHash returns the hash of what r's block remembers of the key.
func (r *rule) blockHash(key uint64) uint64 {
	const odd = 0x9e3779b97f4a7c15
	which := ((r.ID^uint64(r.BlockAfter))*odd ^ uint64(r.BlockFor)) * odd
	return max((key^which)&^1, 2)
}
