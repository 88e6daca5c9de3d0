package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// TB is the part of a test that a random sequence needs. A *rapid.T has it, too.
type TB interface {
	Helper()
	Context() context.Context
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Sequence runs the same random ops on a store and on a naive model, which keeps every event, and
// compares the results. Draw makes all choices, so that a tool can search for a short sequence
// that fails.
type Sequence struct {
	TB
	Store    ratelimit.Store // empty
	Clock    Clock           // the store's
	Supports Supports
	Draw     func(n int) int // a number from 0 to n-1
	Back     bool            // the clock sometimes goes back

	families [][]ratelimit.Rule
	counters map[subject]*counter
	charges  []modelCharge
	ids      int
	log      []string
	some     []int         // the families in use for a while
	last     subject       // the counter of the last op or denial
	wait     time.Duration // RetryAfter of its denial
	due      bool          // wait has passed, or will in a microsecond
	latest   time.Duration // the latest time of the clock
}

func testRandom(h harness)          { runRandom(h, false, 2000) }
func testRandomClockBack(h harness) { runRandom(h, true, 2000) }

// testRandomOneRule uses one family of rules at a time, so that each counter has many ops.
func testRandomOneRule(h harness) {
	supports := h.supports
	for _, family := range ruleFamilies(supports, true) {
		h.supports = func(r ratelimit.Rule) bool { return r == family[0] }
		runRandom(h, true, 100)
	}
}

func runRandom(h harness, back bool, lists int) {
	seed := uint64(time.Now().UnixNano())
	h.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s := &Sequence{TB: h, Store: h.store, Clock: h.clock, Supports: h.supports, Draw: r.IntN, Back: back}
	s.Run(lists)
}

// Run runs a number of random lists of ops.
func (s *Sequence) Run(lists int) {
	s.counters = map[subject]*counter{}
	s.families = ruleFamilies(s.Supports, s.Back)
	s.latest = s.now()
	for range lists {
		s.runList()
	}
}

type subject struct {
	key    string
	family int
}

// counter is the model of one counter and its block.
type counter struct {
	model
	block blockModel
}

// modelCharge is a charge that can be refunded.
type modelCharge struct {
	subject
	id      int
	receipt ratelimit.Receipt
}

// modelOp is an op, its counter in the model, and for a refund the charge.
type modelOp struct {
	ratelimit.Op
	*counter
	subject
	refund int // id of the charge
}

func (s *Sequence) now() time.Duration {
	return time.Duration(s.Clock.Now().UnixMicro()) * time.Microsecond
}

func (s *Sequence) counterFor(at subject) *counter {
	if s.counters[at] == nil {
		s.counters[at] = &counter{model: newModel(s.families[at.family][0])}
	}
	return s.counters[at]
}

func (s *Sequence) runList() {
	s.moveClock()
	s.chooseFocus()
	list := s.drawList(s.last.key)
	ops := make([]ratelimit.Op, len(list))
	for i := range list {
		ops[i] = list[i].Op
	}
	run := s.Store.Do
	if s.Draw(2) == 0 {
		run = func(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
			return do(ctx, s.Store, ops)
		}
	}
	results, err := run(s.Context(), ops)
	s.log = append(s.log, fmt.Sprintf("%v %v: %v %v", s.now(), ops, results, err))
	groups := splitGroups(list, ops)
	if slices.ContainsFunc(groups, hasTooLarge) {
		if err == nil {
			s.fail("no error, want ErrTooLarge")
		}
		return
	}
	if err != nil {
		s.fail("%v", err)
	}
	for _, group := range groups {
		s.compareResults(group, results[:len(group)])
		results = results[len(group):]
	}
}

// splitGroups splits a list into the groups of its ops.
func splitGroups(list []modelOp, ops []ratelimit.Op) (groups [][]modelOp) {
	for from, group := range storage.Groups(ops) {
		groups = append(groups, list[from:from+len(group)])
	}
	return groups
}

// drawList draws one to three ops on a key: takes, refunds, or anything.
func (s *Sequence) drawList(key string) []modelOp {
	list := make([]modelOp, 1+s.Draw(3))
	kind := []ratelimit.Kind{ratelimit.Take, ratelimit.Take, ratelimit.Refund, 0, 0, 0}[s.Draw(6)]
	for i := range list {
		q := s.drawOp(key, kind, list[:i])
		if len(list) == 1 && q.Kind == ratelimit.Take && s.Draw(3) == 0 {
			q.Prepaid = time.Duration(s.Draw(int(q.Rule.Per().Microseconds())+1)) * time.Microsecond
		}
		q.NewGroup = s.Draw(8) == 0
		list[i] = q
	}
	return list
}

// moveClock moves the clock: mostly a little, rarely by a lap, or to a significant time. It goes
// back at most 5 s behind its latest time, because a store may have dropped older state.
func (s *Sequence) moveClock() {
	var d time.Duration
	k := s.Draw(24)
	s.due = s.wait > 0 && k < 12
	switch {
	case s.due:
		d = s.wait - time.Duration(k%2)*time.Microsecond
	case k == 0:
		d = time.Duration(s.Draw(30_000_000)) * time.Microsecond
	case k < 4:
		d = time.Second - s.now()%time.Second
	case k < 6:
		if s.Back {
			d = max(-time.Duration(s.Draw(3_000_000))*time.Microsecond, s.latest-5*time.Second-s.now())
		}
	default:
		d = time.Duration(s.Draw(300_000)) * time.Microsecond
	}
	s.wait = 0
	if d > 0 || s.Back && s.now()+d > s.latest-5*time.Second {
		s.Clock.Advance(d)
	}
	s.latest = max(s.latest, s.now())
}

// chooseFocus chooses a few families for a while and one preferred key, so that charges
// accumulate, and after a wait the counter that was denied.
func (s *Sequence) chooseFocus() {
	if len(s.some) == 0 || s.Draw(40) == 0 {
		s.some = []int{s.Draw(len(s.families)), s.Draw(len(s.families)), s.Draw(len(s.families))}
	}
	if s.last.key == "" || !s.due && s.Draw(4) == 0 {
		s.last.key = fmt.Sprint("key", s.Draw(3))
	}
}

// drawOp draws an op of a kind, or of any if kind is 0.
func (s *Sequence) drawOp(key string, kind ratelimit.Kind, before []modelOp) modelOp {
	if !s.due {
		s.last.family = s.some[s.Draw(len(s.some))]
	}
	q := modelOp{subject: s.last}
	tiers := s.families[q.family]
	q.Op = ratelimit.Op{Key: key, Rule: tiers[s.Draw(len(tiers))], N: int64(1 + s.Draw(4))}
	switch kinds := []ratelimit.Kind{ratelimit.Peek, ratelimit.Add, ratelimit.Count, ratelimit.Refund, ratelimit.Reset}; s.Draw(9) {
	case 0, 1, 2, 3:
		q.Kind = kinds[s.Draw(len(kinds)-1)]
	case 4:
		q.Kind = kinds[s.Draw(len(kinds))]
	default:
		q.Kind = ratelimit.Take
	}
	if kind != 0 {
		q.Kind = kind
	}
	if kind == 0 && s.due && s.Draw(2) == 0 { // an allowed take might repair a wrong state
		q.Kind = ratelimit.Peek
	}
	s.due = false
	s.makeValid(&q, before)
	q.counter = s.counterFor(q.subject)
	if m, ok := q.model.(*gcraModel); ok {
		q.Rule = m.ruleUnlessEmpty(q.Rule, s.now())
	}
	return q
}

// makeValid changes an op to one that its rule supports.
func (s *Sequence) makeValid(q *modelOp, before []modelOp) {
	algorithm := q.Rule.Algorithm()
	if q.Rule.Limit() == 0 && (q.Kind == ratelimit.Take || q.Kind == ratelimit.Peek) {
		q.Kind = ratelimit.Add
	}
	if algorithm == "gcra" && q.Kind == ratelimit.Count {
		q.Kind = ratelimit.Peek
	}
	switch q.Kind {
	case ratelimit.Count, ratelimit.Add:
		if s.Draw(6) == 0 {
			q.N = 0
		}
		if algorithm == "buckets" || algorithm == "log" {
			q.Interval = time.Duration(s.Draw(int(q.Rule.Span().Microseconds())+1)) * time.Microsecond
		}
	case ratelimit.Refund:
		if len(s.charges) == 0 {
			return
		}
		recent := s.charges
		if s.Draw(2) == 0 { // those that can still be refunded, most likely
			recent = s.charges[max(0, len(s.charges)-1-s.Draw(3)):]
		}
		p := recent[s.Draw(len(recent))]
		if p.key != q.Key || hasReset(before, p.subject) {
			return
		}
		// Each unit is refunded once: a store doesn't remember which ones were.
		q.subject, q.Rule, q.Receipt, q.refund = p.subject, s.families[p.family][0], p.receipt, p.id
		s.forgetCharges(func(other modelCharge) bool { return other.id == p.id })
		if n := p.receipt.N; n > 1 && s.Draw(2) == 0 {
			q.Receipt.N = 1 + int64(s.Draw(int(n-1)))
			p.receipt.N -= q.Receipt.N
			if q.Rule.Algorithm() != "gcra" { // a second refund finds no charge of a GCRA
				s.charges = append(s.charges, p)
			}
		}
	}
}

func hasReset(ops []modelOp, at subject) bool {
	for _, q := range ops {
		if q.subject == at && q.Kind == ratelimit.Reset {
			return true
		}
	}
	return false
}

func (s *Sequence) forgetCharges(which func(modelCharge) bool) {
	var kept []modelCharge
	for _, p := range s.charges {
		if !which(p) {
			kept = append(kept, p)
		}
	}
	s.charges = kept
}

// pendingUnits returns the units that takes charge to a counter.
func pendingUnits(takes []modelOp, c *counter) (n int64) {
	for _, q := range takes {
		if q.counter == c {
			n += q.N
		}
	}
	return n
}

func hasTooLarge(group []modelOp) bool {
	for i, q := range group {
		n := q.N
		if q.Kind == ratelimit.Take {
			n += pendingUnits(group[:i], q.counter)
		} else if q.Kind != ratelimit.Peek {
			continue
		}
		if n > q.Rule.Burst() || q.Rule.Algorithm() == "gcra" && prepaidUnits(q.Op) > q.Rule.Burst()-n {
			return true
		}
	}
	return false
}

// prepaidUnits returns how many units of a GCRA leak during the op's Prepaid, rounded up.
func prepaidUnits(op ratelimit.Op) int64 {
	per := op.Rule.Per().Microseconds()
	return (op.Prepaid.Microseconds()*op.Rule.Limit() + per - 1) / per
}
