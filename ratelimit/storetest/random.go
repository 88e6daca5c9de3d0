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

// TB has the methods of a test that a [Sequence] calls. A *testing.T and a *rapid.T have them.
type TB interface {
	Helper()
	Context() context.Context
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Sequence runs the same random ops on a store and on a simple model, which keeps every event, and compares the results.
// Draw makes all choices, so that a tool can search for the shortest sequence that fails.
type Sequence struct {
	TB
	Store    ratelimit.Store // must be empty
	Clock    Clock           // the clock that Store reads
	Supports Supports
	Draw     func(n int) int // returns a number from 0 to n-1
	Back     bool            // whether the clock sometimes goes back

	families [][]ratelimit.Rule
	counters map[subject]*counter
	charges  []modelCharge
	ids      int
	log      []string
	some     []int         // indexes of the families that are in use at present
	last     subject       // the counter of the last op, or of the last denial
	wait     time.Duration // the RetryAfter of the last denial
	due      bool          // whether wait has passed, or will pass in a microsecond
	latest   time.Duration // the latest time that the clock has shown
}

func testRandom(h harness)          { runRandom(h, false, 2000) }
func testRandomClockBack(h harness) { runRandom(h, true, 2000) }

// testRandomOneRule runs a sequence for each family of rules, so that each counter gets many ops.
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

// Run runs random lists of ops. lists is their number.
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

// counter is the model of a counter and of its block.
type counter struct {
	model
	block blockModel
}

// modelCharge is a charge that a later op may refund.
type modelCharge struct {
	subject
	id      int
	receipt ratelimit.Receipt
}

// modelOp is an op with its counter in the model.
type modelOp struct {
	ratelimit.Op
	*counter
	subject
	refund int // the id of the charge that a refund gives back
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

// splitGroups returns the groups of a list.
func splitGroups(list []modelOp, ops []ratelimit.Op) (groups [][]modelOp) {
	for from, group := range storage.Groups(ops) {
		groups = append(groups, list[from:from+len(group)])
	}
	return groups
}

// drawList returns one to three random ops: only takes, only refunds, or ops of any kind. Most of them have the given key.
func (s *Sequence) drawList(key string) []modelOp {
	list := make([]modelOp, 1+s.Draw(3))
	kind := []ratelimit.Kind{ratelimit.Take, ratelimit.Take, ratelimit.Refund, 0, 0, 0}[s.Draw(6)]
	for i := range list {
		if i > 0 && s.Draw(8) == 0 {
			key = s.drawKey()
		}
		q := s.drawOp(key, kind, list[:i])
		if len(list) == 1 && q.Kind == ratelimit.Take && !q.Rule.Layout().Concurrent && s.Draw(3) == 0 {
			q.Prepaid = time.Duration(s.Draw(int(min(q.Rule.Per(), ratelimit.MaxPrepaid).Microseconds())+1)) * time.Microsecond
		}
		q.NewGroup = s.Draw(8) == 0
		list[i] = q
	}
	return list
}

// moveClock moves the clock, in most cases by a short time or to the end of a denial. The clock is never more than 5 s behind
// its latest time, because a store may have dropped older state.
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

// chooseFocus chooses a few families and a key for the next ops, so that charges accumulate. It keeps a counter that was
// denied until the wait is over.
func (s *Sequence) chooseFocus() {
	if len(s.some) == 0 || s.Draw(40) == 0 {
		s.some = []int{s.Draw(len(s.families)), s.Draw(len(s.families)), s.Draw(len(s.families))}
	}
	if s.last.key == "" || !s.due && s.Draw(4) == 0 {
		s.last.key = s.drawKey()
	}
}

func (s *Sequence) drawKey() string { return fmt.Sprint("key", s.Draw(3)) }

// drawOp returns a random op of a kind. If kind is 0, the kind is random, too.
func (s *Sequence) drawOp(key string, kind ratelimit.Kind, before []modelOp) modelOp {
	if !s.due {
		s.last.family = s.some[s.Draw(len(s.some))]
	}
	q := modelOp{subject: subject{key, s.last.family}}
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
	if kind == 0 && s.due && s.Draw(2) == 0 { // because a take could hide a wrong state by repairing it
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

// makeValid changes an op so that its rule supports it, and gives a refund its receipt.
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
		if s.Draw(2) == 0 { // recent charges, which most likely can still be refunded
			recent = s.charges[max(0, len(s.charges)-1-s.Draw(3)):]
		}
		p := recent[s.Draw(len(recent))]
		if p.key != q.Key || hasReset(before, p.subject) {
			return
		}
		// Each unit is refunded only once, because a store does not remember refunds.
		q.subject, q.Rule, q.Receipt, q.refund = p.subject, s.families[p.family][0], p.receipt, p.id
		s.forgetCharges(func(other modelCharge) bool { return other.id == p.id })
		if n := p.receipt.N; n > 1 && s.Draw(2) == 0 {
			q.Receipt.N = 1 + int64(s.Draw(int(n-1)))
			p.receipt.N -= q.Receipt.N
			if q.Rule.Algorithm() != "gcra" { // a GCRA accepts only one refund of a charge
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

// pendingUnits returns the number of units that takes charge to c.
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

// prepaidUnits returns the number of units of a GCRA that come back during the op's Prepaid, rounded up.
func prepaidUnits(op ratelimit.Op) int64 {
	per := op.Rule.Per().Microseconds()
	return (op.Prepaid.Microseconds()*op.Rule.Limit() + per - 1) / per
}
