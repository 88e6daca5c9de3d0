package storetest

import (
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// compareResults runs a group on the model and compares the model's results with the store's.
func (s *Sequence) compareResults(group []modelOp, got []ratelimit.Result) {
	now := s.now()
	violated, denied := make([]bool, len(group)), false
	for i, q := range group {
		if q.Kind == ratelimit.Take {
			res := modelResult(q.model, q.Rule, q.N+pendingUnits(group[:i], q.counter), now)
			violated[i] = !res.Allowed || q.blockTimeLeft(now) > 0
			denied = denied || violated[i]
		}
	}
	for i, q := range group {
		if denied {
			s.requireResult(i, got[i], s.deniedTake(q, pendingUnits(group[:i], q.counter), violated[i], now))
			continue
		}
		s.requireResult(i, got[i], s.runOnModel(q, got[i].Receipt, now))
		s.checkValidFor(q, got[i], now)
	}
}

// deniedTake returns the expected result of a take in a denied group.
func (s *Sequence) deniedTake(q modelOp, before int64, violated bool, now time.Duration) ratelimit.Result {
	want := modelResult(q.model, q.Rule, q.N+before, now)
	if violated && q.Rule.Block().After > 0 {
		q.block.countDenial(q.Rule, now)
		applyBlock(&want, q.blockTimeLeft(now))
		want.Blocked = q.blockTimeLeft(now)
	}
	want.Allowed, want.Violated = false, violated
	s.wait, s.last = want.RetryAfter, q.subject
	return want
}

// blockTimeLeft returns the remaining time of the counter's block, or 0 if the counter is not blocked.
func (q modelOp) blockTimeLeft(now time.Duration) time.Duration { return q.block.timeLeft(now) }

// runOnModel runs an op on the model and returns its result.
func (s *Sequence) runOnModel(q modelOp, receipt ratelimit.Receipt, now time.Duration) (want ratelimit.Result) {
	r, over := q.Rule, q.Interval
	if over == 0 {
		over = r.Per()
	}
	n, allowed := int64(1), true
	switch q.Kind {
	case ratelimit.Count:
		return ratelimit.Result{Allowed: true, Limit: r.Limit(), Count: q.count(r, over, now)}
	case ratelimit.Take, ratelimit.Add:
		if q.N == 0 {
			break
		}
		s.ids++
		q.addCharge(event{id: s.ids, n: q.N, charged: now, ahead: q.Prepaid, rule: r})
		s.charges = append(s.charges, modelCharge{q.subject, s.ids, receipt})
	case ratelimit.Refund:
		allowed = q.refund > 0 && q.model.refund(r, q.refund, q.Receipt.N, now)
	case ratelimit.Reset:
		*q.counter = counter{model: newModel(r)}
		// A store may accept a receipt of an older charge if a later charge leaves the same state. So older charges are
		// not refunded after a reset.
		s.forgetCharges(func(p modelCharge) bool { return p.subject == q.subject })
	case ratelimit.Peek:
		n = q.N
	}
	want = modelResult(q.model, r, n, now)
	if q.Kind != ratelimit.Add {
		applyBlock(&want, q.blockTimeLeft(now))
	}
	switch q.Kind {
	case ratelimit.Peek:
		want.Violated, want.Blocked = !want.Allowed, q.blockTimeLeft(now)
	case ratelimit.Add:
		want.Allowed, want.Count = allowed, q.count(r, over, now)
	default:
		want.Allowed = allowed
	}
	return want
}

// checkValidFor checks the result of Op.ValidFor for a take.
func (s *Sequence) checkValidFor(q modelOp, got ratelimit.Result, now time.Duration) {
	want := q.Prepaid
	switch m := q.model.(type) {
	case *bucketModel:
		want = min(want, time.Duration(m.newest+1)*q.Rule.Interval()-now)
	case *windowModel:
		want = min(want, m.end-now)
	}
	if want = max(0, want-time.Microsecond); q.Kind == ratelimit.Take && q.ValidFor(got) != want {
		s.fail("units prepaid for %v are valid for %v, want %v", q.Prepaid, q.ValidFor(got), want)
	}
}

func (s *Sequence) requireResult(i int, got, want ratelimit.Result) {
	if got.Source == ratelimit.FromDenyCache {
		s.requireCachedDenial(i, got, want)
		return
	}
	got.Receipt = ratelimit.Receipt{}
	if got != want {
		s.fail("op %d: result %+v, want %+v", i, got, want)
	}
}

// requireCachedDenial checks a result of package layer's DenyCache, which may report a shorter wait than the store.
func (s *Sequence) requireCachedDenial(i int, got, want ratelimit.Result) {
	if got.Allowed || want.Allowed || got.Limit != want.Limit || got.RetryAfter > want.RetryAfter || got.Violated && !want.Violated {
		s.fail("op %d: denied by the cache with %+v, want %+v", i, got, want)
	}
}

func (s *Sequence) fail(format string, args ...any) {
	for _, line := range s.log[max(0, len(s.log)-20):] {
		s.Logf("%s", line)
	}
	s.Fatalf(format, args...)
}
