package ratelimit

// group runs one atomic group of ops on a shard, which is locked: first every take is
// checked, then there is room for all that is charged, then everything is done in order.
// A denied group changes nothing but what a Block remembers.
type group struct {
	*shard
	ops []Op
	out []Result // one for each op; until an op is done, only Violated has a meaning
	key uint64   // hash of the ops' key
	now int64
	// wait is how long a full store has no room for the group's counters, if it denies.
	wait int64
}

func (g *group) do() error {
	denied, err := g.check()
	if err == nil && !denied {
		denied, err = g.open()
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
		if !op.charges() {
			continue
		}
		r, n, passes := &op.Rule, op.N+pending(g.ops[:i], &op.Rule), true
		if s := g.find(r); s.entry != nil {
			if passes = op.Kind == Add || r.passes(s, n, g.now); passes && !r.fits(s, n, g.now) {
				err = ErrOverflow
			}
		}
		if op.Kind == Take && (!passes || g.blocked(r) > 0) {
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
		case op.Kind == Peek:
			*out = g.would(&op.Rule, op.N)
			out.Violated = !out.Allowed
			out.Blocked = micros(max(0, g.blocked(&op.Rule)))
		case op.Kind == Count:
			*out = Result{Allowed: true, Limit: op.Rule.limit, Count: g.count(op)}
		case denied && op.charges():
			g.deny(i)
		case denied:
			*out = Result{Limit: op.Rule.limit}
		case op.Kind == Add && op.N == 0:
			*out = g.would(&op.Rule, 1)
			out.Allowed, out.Count = true, g.count(op)
		case op.Kind == Refund:
			*out = g.refund(op)
		case op.Kind == Reset:
			g.reset(op, g.ops[i+1:])
			*out = op.Rule.untouched()
		default:
			*out = g.charge(op)
		}
	}
}

// find returns the state of the key's counter of r; its entry is nil if there is none.
func (g *group) find(r *Rule) state {
	e := g.table.find(r.hash(g.key))
	if e == nil {
		return state{}
	}
	return g.state(e)
}

// asked says what a take of n would get from the counter alone.
func (g *group) asked(r *Rule, n int64) (res Result) {
	s := g.find(r)
	if s.entry == nil {
		return r.untouched()
	}
	r.check(s, n, g.now, &res)
	return res
}

// would says what a take of n would get.
func (g *group) would(r *Rule, n int64) Result {
	res := g.asked(r, n)
	res.hold(g.blocked(r))
	return res
}

// blocked returns how long r's block of the key lasts, 0 or less if there is none.
func (g *group) blocked(r *Rule) int64 {
	if r.block.After == 0 {
		return 0
	}
	return blockPair{}.left(g.table.find(r.blockHash(g.key)), r, g.now)
}

// hold makes the result one of a time in which nothing passes.
func (r *Result) hold(left int64) {
	if left <= 0 {
		return
	}
	r.Allowed, r.Remaining = false, 0
	r.RetryAfter = max(r.RetryAfter, micros(left))
	r.ResetAfter = max(r.ResetAfter, micros(left))
}

// deny answers a take or an add of a denied group.
func (g *group) deny(i int) {
	op, out := &g.ops[i], &g.out[i]
	r, violated := &op.Rule, out.Violated
	*out = g.asked(r, op.N+pending(g.ops[:i], r))
	switch {
	case !violated:
	case !out.Allowed || g.blocked(r) > 0:
		left := g.note(r)
		out.hold(left)
		out.Blocked = micros(max(0, left))
	default:
		out.hold(g.wait) // only a full store denies
	}
	out.Allowed, out.Violated = false, violated
}

// note tells r's block of a denial, and returns how long it lasts, as blocked does. A
// store that is full and denies what is new doesn't count denials either.
func (g *group) note(r *Rule) int64 {
	if r.block.After == 0 {
		return 0
	}
	hash := r.blockHash(g.key)
	e := g.table.find(hash)
	if e == nil {
		if e = g.insert(hash); e == nil {
			return 0
		}
	}
	return blockPair{}.note(e, r, g.now)
}

// charge charges the op; what it reports beyond is what the next unit would get.
func (g *group) charge(op *Op) (res Result) {
	r, s := &op.Rule, g.find(&op.Rule)
	res.Receipt = r.charge(s, op.N, g.now, op.ahead())
	res.Receipt.Counter = s.hash
	r.check(s, 1, g.now, &res)
	res.hold(g.blocked(r))
	res.Allowed = true
	if op.Kind == Add {
		res.Count = r.count(s, op.interval(), g.now)
	}
	return res
}

func (g *group) count(op *Op) int64 {
	s := g.find(&op.Rule)
	if s.entry == nil {
		return 0
	}
	return op.Rule.count(s, op.interval(), g.now)
}

func (g *group) refund(op *Op) Result {
	s := g.find(&op.Rule)
	done := s.entry != nil && op.Receipt.Counter == s.hash && op.Rule.refund(s, op.Receipt, g.now)
	res := g.would(&op.Rule, 1)
	res.Allowed = done
	return res
}

// reset forgets a counter and its block. If a later op of the group charges the counter,
// there has to be room for it then, so it begins anew in place.
func (g *group) reset(op *Op, later []Op) {
	r := &op.Rule
	if r.block.After > 0 {
		g.forget(r.blockHash(g.key))
	}
	n := pending(later, r)
	s := g.find(r)
	switch {
	case s.entry == nil:
	case n == 0:
		g.forget(r.hash(g.key))
	default:
		clear(s.words)
		g.lives++
		r.begin(s, maxCount, g.now, g.lives, 0) // as wide as the words may have been
	}
}

// hash returns the hash of the key's counter of r, from that of the key.
func (r *Rule) hash(key uint64) uint64 {
	h := (key ^ r.id) &^ 1
	if r.algorithm.hasBlock() {
		return h | 1
	}
	return max(h, 2) // 0 is a gap
}

// blockHash returns the hash of what r's block remembers of the key.
func (r *Rule) blockHash(key uint64) uint64 {
	const odd = 0x9e3779b97f4a7c15
	which := ((r.id^uint64(r.block.After))*odd ^ uint64(r.block.For)) * odd
	return max((key^which)&^1, 2)
}
