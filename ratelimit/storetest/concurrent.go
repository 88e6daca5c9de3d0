package storetest

import (
	"errors"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// testConcurrentRule checks which units a release gives back, and when units that are never released are forgotten.
func testConcurrentRule(h harness) {
	const life = 3 * time.Second
	r := ratelimit.Concurrent(2).WithLife(life)
	if !h.supports(r) {
		return
	}
	h.concurrentResults(r)
	h.deadHolder(r)
	h.olderHolderEnds(r)
	h.lateRelease(r)
	h.equalTimes(r)
	_, err := do(h.Context(), h.store, []ratelimit.Op{takePrepaidOp(r, "k", 1, time.Second)})
	requireEqual(h, "prepaid: ErrOp", errors.Is(err, ratelimit.ErrOp), true)
}

func (h harness) free(r ratelimit.Rule, key string) int64 {
	h.Helper()
	return h.doOne(ratelimit.Peek, r, key, 1).Remaining
}

// concurrentResults checks the results of a full counter, and that no other rule shares the counter.
func (h harness) concurrentResults(r ratelimit.Rule) {
	first := h.doOne(ratelimit.Take, r, "full", 1)
	requireEqual(h, "Remaining", first.Remaining, 1)
	second := h.doOne(ratelimit.Take, r, "full", 1)
	requireEqual(h, "last: Allowed", second.Allowed, true)
	requireEqual(h, "last: RetryAfter", second.RetryAfter, time.Second)
	requireEqual(h, "last: ResetAfter", second.ResetAfter, time.Second)
	requireEqual(h, "denied: RetryAfter", h.requireDenied(r, "full", 1).RetryAfter, time.Second)
	requireEqual(h, "count", h.count(r, "full", 0), 2)
	for _, other := range []ratelimit.Rule{
		ratelimit.SlidingLog(2, r.Per()), ratelimit.SlidingLog(2, r.Per()).WithName(r.Name()), r.WithName("other"), r.WithLife(time.Minute),
	} {
		if h.supports(other) {
			requireEqual(h, other.String()+": Remaining", h.free(other, "full"), 2)
		}
	}
	requireEqual(h, "release", h.refund(r, "full", first.Receipt), true)
	requireEqual(h, "after the release", h.doOne(ratelimit.Take, r, "full", 1).Allowed, true)
}

// deadHolder checks that units that are never released come back when their life ends, although other units are taken and
// released all the time.
func (h harness) deadHolder(r ratelimit.Rule) {
	const step = 100 * time.Millisecond
	h.doOne(ratelimit.Take, r, "dead", 1)
	for range r.Per() / step {
		requireEqual(h, "before the life ends", h.free(r, "dead"), 1)
		res := h.doOne(ratelimit.Take, r, "dead", 1)
		requireEqual(h, "beside a dead holder: Allowed", res.Allowed, true)
		h.clock.Advance(step - time.Microsecond)
		requireEqual(h, "two holders", h.free(r, "dead"), 0)
		requireEqual(h, "release", h.refund(r, "dead", res.Receipt), true)
		requireEqual(h, "just before the life ends", h.free(r, "dead"), 1)
		h.clock.Advance(time.Microsecond)
	}
	requireEqual(h, "when the life has ended", h.free(r, "dead"), 2)
}

// olderHolderEnds checks that the release of older units does not shorten the life of newer ones.
func (h harness) olderHolderEnds(r ratelimit.Rule) {
	older := h.doOne(ratelimit.Take, r, "older", 1)
	h.clock.Advance(time.Second)
	newer := h.doOne(ratelimit.Take, r, "older", 1)
	requireEqual(h, "release of the older", h.refund(r, "older", older.Receipt), true)
	h.clock.Advance(r.Per() - time.Microsecond)
	requireEqual(h, "before the newer life ends", h.free(r, "older"), 1)
	requireEqual(h, "second release of the older", h.refund(r, "older", older.Receipt), false)
	requireEqual(h, "release of the newer", h.refund(r, "older", newer.Receipt), true)
	requireEqual(h, "after both releases", h.free(r, "older"), 2)
}

// lateRelease checks that a release after the life has ended gives back nothing.
func (h harness) lateRelease(r ratelimit.Rule) {
	late := h.doOne(ratelimit.Take, r, "late", 1)
	h.clock.Advance(r.Per())
	h.doOne(ratelimit.Take, r, "late", 1)
	requireEqual(h, "late release", h.refund(r, "late", late.Receipt), false)
	requireEqual(h, "after a late release", h.free(r, "late"), 1)
}

// equalTimes checks the release of units that were taken at the same time.
func (h harness) equalTimes(r ratelimit.Rule) {
	wide := r.WithLimit(5)
	two := h.doOne(ratelimit.Take, wide, "equal", 2).Receipt
	one := h.doOne(ratelimit.Take, wide, "equal", 1).Receipt
	h.clock.Advance(time.Second)
	h.doOne(ratelimit.Take, wide, "equal", 1)
	requireEqual(h, "release of one", h.refund(wide, "equal", one), true)
	requireEqual(h, "three are left", h.free(wide, "equal"), 2)
	requireEqual(h, "release of two", h.refund(wide, "equal", two), true)
	requireEqual(h, "one is left", h.free(wide, "equal"), 4)
	requireEqual(h, "release of two again", h.refund(wide, "equal", two), false)
}
