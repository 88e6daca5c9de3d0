package ratelimit

import "sync/atomic"

// subject is what a [MemoryStore] remembers of one key. The shard's lock guards it.
type subject struct {
	key      string
	counters []counter // few: one for each rule that charged
	bytes    int64     // what the subject counts for in the store's bound

	newer, older *subject // in its queue
	used         int64    // time of the last op
	keep         int64    // how long after it the subject may be forgotten
}

// counter is the state of one rule.
type counter struct {
	rule  Rule // by its id
	state state
}

// find returns the subject's counter of r, nil if there is none or no subject.
func (s *subject) find(r Rule) *counter {
	if s == nil {
		return nil
	}
	id := r.id
	for i := range s.counters {
		if s.counters[i].rule.id == id {
			return &s.counters[i]
		}
	}
	return nil
}

// check runs the first half of a group: what each take would get, together with the
// units that the group charges before it.
func (s *subject) check(ops []Op, out []Result, now int64) (denied bool, err error) {
	for i := range ops {
		op := &ops[i]
		if !op.Kind.charges() {
			continue
		}
		out[i] = untouched(op.Rule)
		if c := s.find(op.Rule); c != nil {
			p, n := op.Rule.pair(), op.N+pending(ops[:i], &op.Rule)
			if !p.fits(c.state, op.Rule, n, now) {
				return false, ErrOverflow
			}
			out[i] = p.check(c.state, op.Rule, n, now)
		}
		if op.Kind == Take && !out[i].Allowed {
			out[i].Violated, denied = true, true
		}
	}
	return denied, nil
}

// would says what a take of n would get.
func (s *subject) would(r Rule, n, now int64) Result {
	c := s.find(r)
	if c == nil {
		return untouched(r)
	}
	return r.pair().check(c.state, r, n, now)
}

// run is the second half of a group: it does what each op asks, except that a denied
// group changes nothing. Counters that begin get the next of lives.
func (s *subject) run(ops []Op, out []Result, denied bool, now int64, lives *atomic.Int64) {
	for i := range ops {
		op := &ops[i]
		switch {
		case op.Kind == Peek:
			out[i] = s.would(op.Rule, op.N, now)
			out[i].Violated = !out[i].Allowed
		case op.Kind == Count:
			out[i] = Result{Allowed: true, Limit: op.Rule.limit, Count: s.count(op, now)}
		case denied:
			out[i].Allowed = false
		case op.Kind == Refund:
			out[i] = s.refund(op, now)
		case op.Kind == Reset:
			s.reset(op.Rule)
			out[i] = untouched(op.Rule)
		default:
			out[i] = s.charge(op, now, lives)
		}
	}
}

// charge charges the op; what it reports beyond is what the next unit would get.
func (s *subject) charge(op *Op, now int64, lives *atomic.Int64) Result {
	c, p := s.find(op.Rule), op.Rule.pair()
	if c == nil {
		s.counters = append(s.counters, counter{op.Rule, p.fresh(op.Rule, now, lives.Add(1))})
		c = &s.counters[len(s.counters)-1]
	}
	var receipt Receipt
	c.state, receipt = p.charge(c.state, op.Rule, op.N, now)
	res := p.check(c.state, op.Rule, 1, now)
	res.Allowed, res.Receipt = true, receipt
	if op.Kind == Add {
		res.Count = p.count(c.state, op.Rule, op.interval(), now)
	}
	return res
}

func (s *subject) count(op *Op, now int64) int64 {
	c := s.find(op.Rule)
	if c == nil {
		return 0
	}
	return op.Rule.pair().count(c.state, op.Rule, op.interval(), now)
}

func (s *subject) refund(op *Op, now int64) Result {
	c := s.find(op.Rule)
	done := c != nil && op.Rule.pair().refund(c.state, op.Rule, op.Receipt, now)
	res := s.would(op.Rule, 1, now)
	res.Allowed = done
	return res
}

// reset forgets one counter; the shard forgets the subject when its time comes.
func (s *subject) reset(r Rule) {
	c := s.find(r)
	if c == nil {
		return
	}
	*c = s.counters[len(s.counters)-1]
	s.counters[len(s.counters)-1] = counter{}
	s.counters = s.counters[:len(s.counters)-1]
}

func (r Rule) pair() pair { return algorithms[r.algorithm].pair }
