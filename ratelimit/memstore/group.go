package memstore

import (
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// group runs one atomic group of ops on a shard, which is locked: first every take is
// checked, then there is room for all that is charged, then everything is done in order.
// A denied group changes nothing but what a Block remembers.
type group struct {
	*shard
	ops []ratelimit.Op
	out []ratelimit.Result // one for each op; until an op is done, only Violated has a meaning
	key uint64             // hash of the ops' key
	now int64
	// wait is how long a full store has no room for the group's counters, if it denies.
	wait int64
}

func (g *group) do() error {
	denied, err := g.check()
	if err == nil && !denied {
		denied, err = g.makeRoom()
	}
	if err == nil {
		g.run(denied)
	}
	return err
}

// check looks for takes that are denied, together with the units that the group charges
// before them. Only a group that is not denied can be too large to count.
func (g *group) check() (denied bool, err error) {
	for i := range g.ops {
		op := &g.ops[i]
		if !storage.Charges(op) {
			continue
		}
		r, passes := ruleFor(op), true
		n := op.N + storage.Pending(g.ops[:i], r.ID)
		if s := g.find(r); s.entry != nil {
			allowed, fit := r.passes(s, n, g.now)
			if passes = op.Kind == ratelimit.Add || allowed; passes && !fit {
				err = ratelimit.ErrOverflow
			}
		}
		if op.Kind == ratelimit.Take && (!passes || g.blockTimeLeft(r) > 0) {
			g.out[i].Violated, denied = true, true
		}
	}
	if denied {
		return true, nil
	}
	return false, err
}

func (g *group) run(denied bool) {
	for i := range g.ops {
		op, out := &g.ops[i], &g.out[i]
		switch {
		case op.Kind == ratelimit.Peek:
			*out = g.peek(ruleFor(op), op.N)
			out.Violated = !out.Allowed
			out.Blocked = duration(max(0, g.blockTimeLeft(ruleFor(op))))
		case op.Kind == ratelimit.Count:
			*out = ratelimit.Result{Allowed: true, Limit: ruleFor(op).Limit, Count: g.count(op)}
		case denied && storage.Charges(op):
			g.setDenied(i)
		case denied:
			*out = ratelimit.Result{Limit: ruleFor(op).Limit}
		case op.Kind == ratelimit.Add && op.N == 0:
			*out = g.peek(ruleFor(op), 1)
			out.Allowed, out.Count = true, g.count(op)
		case op.Kind == ratelimit.Refund:
			*out = g.refund(op)
		case op.Kind == ratelimit.Reset:
			g.reset(op, g.ops[i+1:])
			*out = ruleFor(op).freshResult()
		default:
			*out = g.charge(op)
		}
	}
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
	r.RetryAfter = max(r.RetryAfter, duration(left))
	r.ResetAfter = max(r.ResetAfter, duration(left))
}

// setDenied answers a take or an add of a denied group.
func (g *group) setDenied(i int) {
	op, out := &g.ops[i], &g.out[i]
	r, violated := ruleFor(op), out.Violated
	// An add of more than ever passes waits for the full quota.
	*out = g.evaluate(r, min(op.N+storage.Pending(g.ops[:i], r.ID), r.Burst))
	switch {
	case !violated:
	case !out.Allowed || g.blockTimeLeft(r) > 0:
		left := g.countDenial(r)
		applyBlock(out, left)
		out.Blocked = duration(max(0, left))
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
	res.Receipt = r.charge(s, op.N, g.now, micros(op.Prepaid))
	res.Receipt.Counter = s.hash
	r.check(s, 1, g.now, &res)
	applyBlock(&res, g.blockTimeLeft(r))
	res.Allowed = true
	if op.Kind == ratelimit.Add {
		res.Count = r.count(s, interval(op), g.now)
	}
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

// reset forgets a counter and its block. If a later op of the group charges the counter,
// there has to be room for it then, so it begins anew in place.
func (g *group) reset(op *ratelimit.Op, later []ratelimit.Op) {
	r := ruleFor(op)
	if r.BlockAfter > 0 {
		g.forget(r.blockHash(g.key))
	}
	n := storage.Pending(later, r.ID)
	s := g.find(r)
	switch {
	case s.entry == nil:
	case n == 0:
		g.forget(r.hash(g.key))
	default:
		clear(s.words)
		g.generations++
		r.begin(s, maxCount, g.now, g.generations, 0) // as wide as the words may have been
	}
}

// interval returns the interval that the op counts over, in microseconds.
func interval(op *ratelimit.Op) int64 {
	if op.Interval == 0 {
		return ruleFor(op).Per
	}
	return micros(op.Interval)
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
