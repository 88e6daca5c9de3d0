package storetest

import (
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func (s *Sequence) compare(asked []question, got []ratelimit.Result) {
	now := s.now()
	violated, denied := make([]bool, len(asked)), false
	for i, q := range asked {
		if q.Kind == ratelimit.Take {
			res := check(q.model, q.Rule, q.N+pending(asked[:i], q.counter), now)
			if !res.Allowed || q.left(now) > 0 {
				violated[i], denied = true, true
			}
		}
	}
	for i, q := range asked {
		switch {
		case !denied || q.Kind == ratelimit.Peek || q.Kind == ratelimit.Count:
			s.equal(i, got[i], s.want(q, got[i].Receipt, now))
			s.good(q, got[i], now)
		case q.Kind == ratelimit.Take:
			s.equal(i, got[i], s.denied(q, pending(asked[:i], q.counter), violated[i], now))
		case q.Kind == ratelimit.Add && q.N > 0:
			s.equal(i, got[i], s.undone(q, pending(asked[:i], q.counter), now))
		default:
			s.equal(i, got[i], ratelimit.Result{Limit: q.Rule.Limit()})
		}
	}
}

// denied is a take in a denied group.
func (s *Sequence) denied(q question, before int64, violated bool, now time.Duration) ratelimit.Result {
	want := check(q.model, q.Rule, q.N+before, now)
	if violated && q.Rule.Block().After > 0 {
		q.block.note(q.Rule, now)
		hold(&want, q.left(now))
		want.Blocked = q.left(now)
	}
	want.Allowed, want.Violated = false, violated
	s.wait, s.last = want.RetryAfter, q.subject
	return want
}

// undone returns the result of an add in a denied group. One of more than ever passes waits for
// the full quota.
func (s *Sequence) undone(q question, before int64, now time.Duration) ratelimit.Result {
	want := check(q.model, q.Rule, min(q.N+before, q.Rule.Burst()), now)
	want.Allowed = false
	return want
}

// left is what is left of the counter's block, if the question's rule has one.
func (q question) left(now time.Duration) time.Duration { return q.block.left(now) }

// want runs the question on the model.
func (s *Sequence) want(q question, receipt ratelimit.Receipt, now time.Duration) (want ratelimit.Result) {
	r, over := q.Rule, q.Interval
	if over == 0 {
		over = r.Per()
	}
	n, allowed := int64(1), true
	switch q.Kind {
	case ratelimit.Count:
		want = ratelimit.Result{Allowed: true, Limit: r.Limit(), Count: q.count(r, over, now)}
		s.bounds(q, over, now, want.Count)
		return want
	case ratelimit.Take, ratelimit.Add:
		if q.N == 0 {
			break
		}
		s.ids++
		q.charge(event{id: s.ids, n: q.N, charged: now, ahead: q.Prepaid, rule: r})
		s.paid = append(s.paid, paid{q.subject, s.ids, receipt})
	case ratelimit.Refund:
		allowed = q.refund > 0 && q.model.refund(r, q.refund, q.Receipt.N, now)
	case ratelimit.Reset:
		*q.counter = counter{model: newModel(r)}
		// What looks as the charge left it may be another's: that is up to the store.
		s.forget(func(p paid) bool { return p.subject == q.subject })
	case ratelimit.Peek:
		n = q.N
	}
	want = check(q.model, r, n, now)
	hold(&want, q.left(now))
	switch q.Kind {
	case ratelimit.Peek:
		want.Violated, want.Blocked = !want.Allowed, q.left(now)
	case ratelimit.Add:
		want.Allowed, want.Count = allowed, q.count(r, over, now)
	default:
		want.Allowed = allowed
	}
	return want
}

// bounds checks the promise of buckets itself: never below the truth, and above that of
// whole buckets by at most one.
func (s *Sequence) bounds(q question, d, now time.Duration, count int64) {
	m, ok := q.model.(*bucketModel)
	if s.Back || !ok {
		return
	}
	whole := (d + q.Rule.Interval() - 1) / q.Rule.Interval() * q.Rule.Interval()
	low := units(m.events, func(e event) bool { return e.charged > now-d })
	high := units(m.events, func(e event) bool { return e.charged > now-whole-q.Rule.Interval() })
	if count < low || count > high {
		s.fail("count(%v) is %d, truly %d to %d", d, count, low, high)
	}
}

// good checks for how long units that were taken ahead may be spent.
func (s *Sequence) good(q question, got ratelimit.Result, now time.Duration) {
	want := q.Prepaid
	switch m := q.model.(type) {
	case *bucketModel:
		want = min(want, time.Duration(m.newest+1)*q.Rule.Interval()-now)
	case *windowModel:
		want = min(want, m.end-now)
	}
	if want = max(0, want-time.Microsecond); q.Kind == ratelimit.Take && q.ValidFor(got) != want {
		s.fail("units of %v ahead are good for %v, want %v", q.Prepaid, q.ValidFor(got), want)
	}
}

func (s *Sequence) equal(i int, got, want ratelimit.Result) {
	if got.Source == ratelimit.FromDenyCache {
		s.refused(i, got, want)
		return
	}
	got.Receipt = ratelimit.Receipt{}
	if got != want {
		s.fail("op %d: result %+v, want %+v", i, got, want)
	}
}

// refused checks an answer of package layer's DenyCache: it is right in Allowed, and lets no caller wait for too long.
func (s *Sequence) refused(i int, got, want ratelimit.Result) {
	if got.Allowed || want.Allowed || got.Limit != want.Limit || got.RetryAfter > want.RetryAfter || got.Violated && !want.Violated {
		s.fail("op %d: refused by %+v, want %+v", i, got, want)
	}
}

func (s *Sequence) fail(format string, args ...any) {
	for _, line := range s.log[max(0, len(s.log)-20):] {
		s.Logf("%s", line)
	}
	s.Fatalf(format, args...)
}
