package storetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func testRandom(h harness)     { random(h, false) }
func testRandomBack(h harness) { random(h, true) }

// random asks a store and a model the same random questions.
func random(h harness, back bool) {
	seed := uint64(time.Now().UnixNano())
	h.Logf("seed %d", seed)
	// What a store forgets when the clock goes back over an expiry is not promised.
	var expiry time.Duration
	if back {
		expiry = 1000 * time.Hour
	}
	s := &sequence{
		harness: h,
		Rand:    rand.New(rand.NewPCG(seed, 0)),
		back:    back,
		models:  map[subject]*model{},
		rules: []ratelimit.Rule{
			rule(h, ratelimit.BucketOptions{Limit: 6, Per: 4 * time.Second, Interval: time.Second, Span: 10 * time.Second, Expiry: expiry}),
			rule(h, ratelimit.BucketOptions{Limit: 9, Interval: time.Second, Span: 10 * time.Second, Expiry: expiry}),
			rule(h, ratelimit.BucketOptions{Name: "odd", Limit: 20, Per: 2500 * time.Millisecond, Interval: 700 * time.Millisecond, Span: 2800 * time.Millisecond, Expiry: expiry}),
		},
	}
	for range 5000 {
		s.step()
	}
}

type subject struct {
	key  string
	rule ratelimit.Rule
}

// paid is a charge that can be refunded.
type paid struct {
	subject
	id      int
	receipt ratelimit.Receipt
}

type sequence struct {
	harness
	*rand.Rand
	back   bool
	rules  []ratelimit.Rule
	models map[subject]*model
	paid   []paid
	ids    int
	log    []string
	wait   time.Duration // what a denial said last
}

func (s *sequence) now() time.Duration {
	return time.Duration(s.clock.Now().UnixMicro()) * time.Microsecond
}

func (s *sequence) model(key string, r ratelimit.Rule) *model {
	at := subject{key, r}
	if s.models[at] == nil {
		s.models[at] = &model{}
	}
	return s.models[at]
}

func (s *sequence) step() {
	s.move()
	key := fmt.Sprint("key", s.IntN(3))
	ops := make([]ratelimit.Op, 1+s.IntN(3))
	refunds := make([]paid, len(ops))
	for i := range ops {
		ops[i], refunds[i] = s.op(key)
	}
	results, err := s.store.Do(s.Context(), ops)
	s.log = append(s.log, fmt.Sprintf("%v %v: %v %v", s.now(), ops, results, err))
	if tooLarge(ops) {
		if err == nil {
			s.fail("no error, want ErrTooLarge")
		}
		return
	}
	if err != nil {
		s.fail("%v", err)
	}
	s.compare(ops, refunds, results)
}

// move moves the clock: mostly a little, sometimes a lap, or to a moment that matters.
func (s *sequence) move() {
	var d time.Duration
	switch s.IntN(12) {
	case 0:
		d = time.Duration(s.IntN(30_000_000)) * time.Microsecond
	case 1:
		d = s.wait
	case 2:
		d = s.wait - time.Microsecond
	case 3:
		d = time.Second - s.now()%time.Second
	case 4:
		if s.back {
			d = -time.Duration(s.IntN(3_000_000)) * time.Microsecond
		}
	default:
		d = time.Duration(s.IntN(300_000)) * time.Microsecond
	}
	s.wait = 0
	if d > 0 || s.back {
		s.clock.Advance(d)
	}
}

func (s *sequence) op(key string) (ratelimit.Op, paid) {
	op := ratelimit.Op{Key: key, Rule: s.rules[s.IntN(len(s.rules))], N: 1 + s.Int64N(4)}
	switch op.Kind = ratelimit.Kind(1 + s.IntN(8)); op.Kind {
	case ratelimit.Count, ratelimit.Add:
		op.Interval = time.Duration(s.Int64N(int64(op.Rule.Span())+1)) / 1000 * 1000
	case ratelimit.Refund:
		if len(s.paid) > 0 {
			p := s.paid[s.IntN(len(s.paid))]
			op.Rule, op.Receipt = p.rule, p.receipt
			if p.key == key { // once each: a store doesn't remember which were refunded
				s.forget(p.id)
				return op, p
			}
			op.Receipt = ratelimit.Receipt{}
		}
	case ratelimit.Reset:
		if s.IntN(4) > 0 {
			op.Kind = ratelimit.Take
		}
	case ratelimit.Take, ratelimit.Peek:
	default:
		op.Kind = ratelimit.Take
	}
	return op, paid{}
}

// pending is what the ops charge to r's counter.
func pending(ops []ratelimit.Op, r ratelimit.Rule) (n int64) {
	for _, op := range ops {
		if op.Rule == r && (op.Kind == ratelimit.Take || op.Kind == ratelimit.Add) {
			n += op.N
		}
	}
	return n
}

func tooLarge(ops []ratelimit.Op) bool {
	for i, op := range ops {
		if op.Kind == ratelimit.Take && op.N+pending(ops[:i], op.Rule) > op.Rule.Limit() {
			return true
		}
	}
	return false
}

func (s *sequence) compare(ops []ratelimit.Op, refunds []paid, got []ratelimit.Result) {
	now := s.now()
	checks, denied := make([]ratelimit.Result, len(ops)), false
	for i, op := range ops {
		m := s.model(op.Key, op.Rule)
		if op.Kind == ratelimit.Add {
			m.see(op.Rule, now)
		}
		if op.Kind != ratelimit.Take {
			continue
		}
		if checks[i] = m.check(op.Rule, op.N+pending(ops[:i], op.Rule), now); !checks[i].Allowed {
			checks[i].Violated, denied = true, true
			s.wait = checks[i].RetryAfter
		}
	}
	for i, op := range ops {
		want := checks[i]
		if denied && op.Kind != ratelimit.Peek && op.Kind != ratelimit.Count {
			if op.Kind == ratelimit.Take {
				want.Allowed = false
				s.equal(i, got[i], want)
			} else if got[i].Allowed {
				s.fail("op %d is allowed in a denied group", i)
			}
			s.look(op, now)
			continue
		}
		s.equal(i, got[i], s.want(op, refunds[i], got[i].Receipt, now))
	}
}

// look counts, so that the op's counter has surely reached this bucket: whether an op
// that a denied group left undone has done that much is up to the store.
func (s *sequence) look(op ratelimit.Op, now time.Duration) {
	s.count(op.Rule, op.Key, 0)
	s.model(op.Key, op.Rule).see(op.Rule, now)
}

// want runs the op on the model.
func (s *sequence) want(op ratelimit.Op, refund paid, receipt ratelimit.Receipt, now time.Duration) (want ratelimit.Result) {
	m, r := s.model(op.Key, op.Rule), op.Rule
	over := op.Interval
	if over == 0 {
		over = r.Per()
	}
	switch op.Kind {
	case ratelimit.Take, ratelimit.Add:
		s.ids++
		want = m.charge(r, s.ids, op.N, now)
		if op.Kind == ratelimit.Add {
			want.Count = m.count(r, over, now)
		}
		s.paid = append(s.paid, paid{subject{op.Key, r}, s.ids, receipt})
	case ratelimit.Peek:
		want = m.check(r, op.N, now)
		want.Violated = !want.Allowed
	case ratelimit.Count:
		want = ratelimit.Result{Allowed: true, Limit: r.Limit(), Count: m.count(r, over, now)}
		s.bounds(m, r, over, now, want.Count)
	case ratelimit.Refund:
		done := refund.id > 0 && m.refund(r, refund.id, now)
		want = m.check(r, 1, now)
		want.Allowed = done
	case ratelimit.Reset:
		*m = model{}
		want = m.check(r, 1, now)
	}
	return want
}

// bounds checks the promise itself: never below the truth, and above that of whole
// buckets by at most one.
func (s *sequence) bounds(m *model, r ratelimit.Rule, d, now time.Duration, count int64) {
	if s.back {
		return
	}
	whole := (d + r.Interval() - 1) / r.Interval() * r.Interval()
	if low, high := m.charged(now-d), m.charged(now-whole-r.Interval()); count < low || count > high {
		s.fail("count(%v) is %d, truly %d to %d", d, count, low, high)
	}
}

func (s *sequence) forget(id int) {
	for i, p := range s.paid {
		if p.id == id {
			s.paid = append(s.paid[:i], s.paid[i+1:]...)
			return
		}
	}
}

func (s *sequence) equal(i int, got, want ratelimit.Result) {
	got.Receipt = ratelimit.Receipt{}
	if got != want {
		s.fail("op %d: result %+v, want %+v", i, got, want)
	}
}

func (s *sequence) fail(format string, args ...any) {
	for _, line := range s.log[max(0, len(s.log)-20):] {
		s.Log(line)
	}
	s.Fatalf(format, args...)
}
