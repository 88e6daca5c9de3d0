package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// rulesFor returns a rule for each algorithm and encoding that the store supports. If limit is 0, the rules only count.
func (h harness) rulesFor(limit int64, per time.Duration, block ratelimit.Block) []ratelimit.Rule {
	var rules []ratelimit.Rule
	add := func(r ratelimit.Rule) {
		if h.supports(r) {
			rules = append(rules, r)
		}
	}
	interval := ((per + 12*time.Microsecond - 1) / 12).Truncate(time.Microsecond)
	add(ratelimit.Buckets(ratelimit.BucketOptions{Limit: limit, Per: per, Interval: interval, Span: 12 * interval}).WithBlock(block))
	if limit == 0 {
		log := ratelimit.SlidingLog(1, per).WithoutLimit()
		add(log)
		add(log.WithStream())
		return rules
	}
	add(ratelimit.SlidingLog(limit, per).WithBlock(block))
	add(ratelimit.SlidingLog(limit, per).WithStream().WithBlock(block))
	add(ratelimit.FixedWindow(limit, per).WithBlock(block))
	add(ratelimit.GCRA(limit, per).WithBlock(block))
	return rules
}

// coarseRule returns a rule with buckets of 5 s and a span of 10 minutes.
func coarseRule(limit int64, per time.Duration) ratelimit.Rule {
	return ratelimit.Buckets(ratelimit.BucketOptions{Limit: limit, Per: per, Interval: 5 * time.Second, Span: 10 * time.Minute, Expiry: 20 * time.Minute})
}

// forEachRule calls test with each rule that the store supports, and with a key for that rule.
func (h harness) forEachRule(limit int64, per time.Duration, block ratelimit.Block, test func(h harness, r ratelimit.Rule, key string)) {
	for _, r := range h.rulesFor(limit, per, block) {
		test(h, r, r.String())
	}
}

func canCount(r ratelimit.Rule) bool { return r.Algorithm() != "gcra" }

// testLimitIsExact checks that a rule allows its limit and not more, and that RetryAfter and ResetAfter are exact.
func testLimitIsExact(h harness) {
	h.forEachRule(10, 6*time.Second, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		for i := range int64(9) {
			res := h.doOne(ratelimit.Take, r, key, 1)
			requireEqual(h, "Allowed", res.Allowed, true)
			requireEqual(h, "Remaining", res.Remaining, 9-i)
			requireEqual(h, "RetryAfter", res.RetryAfter, 0)
			requireEqual(h, "Source", res.Source, ratelimit.FromStore)
		}
		res := h.doOne(ratelimit.Take, r, key, 5)
		requireEqual(h, "5 at 9 used: Allowed", res.Allowed, false)
		requireEqual(h, "5 at 9 used: Violated", res.Violated, true)
		requireEqual(h, "5 at 9 used: Remaining", res.Remaining, 1)
		if canCount(r) {
			requireEqual(h, "count after a denial", h.count(r, key, 0), 9)
		}
		requireEqual(h, "peek after a denial", h.doOne(ratelimit.Peek, r, key, 1).Remaining, 1)
		requireEqual(h, "tenth", h.doOne(ratelimit.Take, r, key, 1).Allowed, true)
		requireEqual(h, "eleventh", h.doOne(ratelimit.Take, r, key, 1).Allowed, false)
		for _, n := range []int64{1, 4, 10} {
			wait := h.doOne(ratelimit.Peek, r, key, n).RetryAfter
			if wait == 0 { // the window is over, so all units are available
				h.doOne(ratelimit.Take, r, key, n)
				continue
			}
			h.clock.Advance(wait - time.Microsecond)
			res := h.doOne(ratelimit.Take, r, key, n)
			requireEqual(h, "a microsecond early: Allowed", res.Allowed, false)
			requireEqual(h, "a microsecond early: RetryAfter", res.RetryAfter, time.Microsecond)
			h.clock.Advance(time.Microsecond)
			requireEqual(h, "in time: Allowed", h.doOne(ratelimit.Take, r, key, n).Allowed, true)
		}
		h.clock.Advance(h.doOne(ratelimit.Peek, r, key, 1).ResetAfter - time.Microsecond)
		requireEqual(h, "before ResetAfter: full", h.doOne(ratelimit.Peek, r, key, 1).Remaining == 10, false)
		h.clock.Advance(time.Microsecond)
		requireEqual(h, "after ResetAfter: Remaining", h.doOne(ratelimit.Peek, r, key, 1).Remaining, 10)
	})
}

// testRates checks Remaining for each limit from 1 to 1000 per minute.
func testRates(h harness) {
	for limit := int64(1); limit <= 1000; limit++ {
		h.forEachRule(limit, time.Minute, ratelimit.Block{}, func(h harness, r ratelimit.Rule, _ string) {
			key := r.String()
			left := limit
			for _, n := range []int64{1, limit / 3, limit / 2, 1} {
				if n < 1 || n > left {
					continue
				}
				left -= n
				res := h.doOne(ratelimit.Take, r, key, n)
				if !res.Allowed || res.Remaining != left {
					h.Fatalf("%v: a take of %d: %+v, want %d to remain", r, n, res, left)
				}
			}
			requireEqual(h, "Peek: Remaining", h.doOne(ratelimit.Peek, r, key, 1).Remaining, left)
			h.doOne(ratelimit.Reset, r, key, 0)
		})
	}
}

// testRefunds checks that a receipt gives back its units only once, in whole or in parts, and not after a reset.
func testRefunds(h harness) {
	h.forEachRule(10, 6*time.Second, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		charge := h.doOne(ratelimit.Take, r, key, 3).Receipt
		requireEqual(h, "refund of nothing", h.refund(r, key, ratelimit.Receipt{}), false)
		requireEqual(h, "refund", h.refund(r, key, charge), true)
		requireEqual(h, "Remaining", h.doOne(ratelimit.Peek, r, key, 1).Remaining, 10)
		requireEqual(h, "refund again", h.refund(r, key, charge), false)

		part := h.doOne(ratelimit.Take, r, key, 5).Receipt
		part.N = 2
		requireEqual(h, "refund of a part", h.refund(r, key, part), true)
		requireEqual(h, "Remaining after a part", h.doOne(ratelimit.Peek, r, key, 1).Remaining, 7)

		charge = h.doOne(ratelimit.Take, r, key, 4).Receipt
		h.doOne(ratelimit.Reset, r, key, 0)
		h.clock.Advance(time.Second)
		h.doOne(ratelimit.Take, r, key, 5)
		requireEqual(h, "refund of a charge before the reset", h.refund(r, key, charge), false)
		h.clock.Advance(13 * time.Second)
		charge = h.doOne(ratelimit.Take, r, key, 1).Receipt
		h.clock.Advance(13 * time.Second)
		h.doOne(ratelimit.Take, r, key, 1)
		requireEqual(h, "refund of an expired charge", h.refund(r, key, charge), false)
	})
}

// testAddNothing checks that an add of 0 units charges nothing, and returns the state.
func testAddNothing(h harness) {
	block := ratelimit.Block{After: 1, For: time.Hour}
	h.forEachRule(10, 6*time.Second, block, func(h harness, r ratelimit.Rule, key string) {
		add := func(what string, remaining int64) {
			h.Helper()
			res, peek := h.doOne(ratelimit.Add, r, key, 0), h.doOne(ratelimit.Peek, r, key, 1)
			requireEqual(h, what+": Allowed", res.Allowed, true)
			requireEqual(h, what+": Remaining", res.Remaining, remaining)
			requireEqual(h, what+": ResetAfter", res.ResetAfter, peek.ResetAfter)
			requireEqual(h, what+": Receipt", res.Receipt, ratelimit.Receipt{})
		}
		add("unknown", 10)
		h.clock.Advance(time.Second)
		reset := h.doOne(ratelimit.Take, r, key, 10).ResetAfter
		if r.Algorithm() == "window" {
			requireEqual(h, "the window begins with a charge", reset, 6*time.Second)
		}
		add("full", 0)
		h.doOne(ratelimit.Take, r, key, 1)
		requireEqual(h, "blocked: the peek", h.doOne(ratelimit.Peek, r, key, 1).Blocked, time.Hour)
		requireEqual(h, "blocked: the add", h.doOne(ratelimit.Add, r, key, 0).Blocked, 0)
		h.clock.Advance(time.Hour)
		add("much later", 10)
	})
}

// testRefundsOfOthers charges several counters at the same time. It checks that a receipt refunds only its own counter.
func testRefundsOfOthers(h harness) {
	const keys = 20
	h.forEachRule(10, 6*time.Second, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		other := r.WithName("other")
		var receipts [keys]ratelimit.Receipt
		for i := range receipts {
			receipts[i] = h.doOne(ratelimit.Take, r, fmt.Sprint(key, i), 3).Receipt
		}
		for i := range receipts {
			key, next := fmt.Sprint(key, i), fmt.Sprint(key, (i+1)%keys)
			h.doOne(ratelimit.Take, other, key, 3)
			requireEqual(h, r.String()+": refund of another key", h.refund(r, next, receipts[i]), false)
			requireEqual(h, r.String()+": refund of another rule", h.refund(other, key, receipts[i]), false)
			requireEqual(h, r.String()+": Remaining by another rule", h.doOne(ratelimit.Peek, other, key, 1).Remaining, 7)
		}
		low := r.WithLimit(5)
		for i := range receipts {
			key := fmt.Sprint(key, i)
			requireEqual(h, r.String()+": Remaining", h.doOne(ratelimit.Peek, r, key, 1).Remaining, 7)
			requireEqual(h, r.String()+": refund by another limit", h.refund(low, key, receipts[i]), true)
		}
		h.doOne(ratelimit.Reset, r, fmt.Sprint(key, 0), 0)
		requireEqual(h, r.String()+": Remaining by another rule after a reset", h.doOne(ratelimit.Peek, other, fmt.Sprint(key, 0), 1).Remaining, 7)
	})
}

// testOverflows adds as many units as a counter can hold. It checks that another unit is an error.
func testOverflows(h harness) {
	const most = 1 << 53
	h.forEachRule(10, 6*time.Second, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		most := int64(most)
		if r.Algorithm() == "gcra" {
			most = 1000 * (most / r.Per().Microseconds())
		}
		res := h.doOne(ratelimit.Add, r, key, most-1)
		requireEqual(h, "Remaining", res.Remaining, 0)
		requireEqual(h, "Allowed", h.doOne(ratelimit.Add, r, key, 1).Allowed, true)
		_, err := do(h.Context(), h.store, []ratelimit.Op{{Rule: r, Key: key, N: 1, Kind: ratelimit.Add}})
		if !errors.Is(err, ratelimit.ErrOverflow) {
			h.Errorf("%v: an add beyond 2^53: error %v, want ErrOverflow", r, err)
		}
		if canCount(r) {
			requireEqual(h, "count", h.count(r, key, 0), most)
			h.clock.Advance(13 * time.Second)
			requireEqual(h, "count when the units are out of sight", h.count(r, key, 0), 0)
			for range 1100 { // so many that the sum of all units would exceed 2^63
				requireEqual(h, "Allowed", h.doOne(ratelimit.Add, r, key, most).Allowed, true)
				h.clock.Advance(13 * time.Second)
			}
		}
	})
}

// testGCRAArithmeticLimits checks GCRAs with the largest parameters.
func testGCRAArithmeticLimits(h harness) {
	for _, r := range []ratelimit.Rule{
		ratelimit.GCRA(1<<53, time.Microsecond).WithBurst(1<<53 - 1),
		ratelimit.GCRA(104_248, 24*time.Hour),
		ratelimit.GCRA(1, 100*365*24*time.Hour),
		ratelimit.GCRA(1<<53, 100*365*24*time.Hour).WithBurst(1),
		ratelimit.GCRA(600_000, time.Second),
	} {
		if !h.supports(r) {
			continue
		}
		res := h.doOne(ratelimit.Take, r, "k", 1)
		requireEqual(h, "Remaining", res.Remaining, r.Burst()-1)
		if r.Burst() > 1 {
			requireEqual(h, "all but one", h.doOne(ratelimit.Take, r, "k", r.Burst()-1).Remaining, 0)
		}
		if r.Per() == time.Microsecond {
			charge := h.doOne(ratelimit.Add, r, "k", 1)
			requireEqual(h, "exactly 2^53", charge.Allowed, true)
			requireEqual(h, "and back", h.refund(r, "k", charge.Receipt), true)
		}
		res = h.requireDenied(r, "k", r.Burst())
		requireEqual(h, "RetryAfter is ResetAfter", res.RetryAfter, res.ResetAfter)
		h.clock.Advance(res.RetryAfter - time.Microsecond)
		requireEqual(h, "early", h.doOne(ratelimit.Peek, r, "k", r.Burst()).Allowed, false)
		h.clock.Advance(time.Microsecond)
		requireEqual(h, "in time", h.doOne(ratelimit.Take, r, "k", r.Burst()).Allowed, true)
		if r.Limit() == 1<<53 { // the product of the time and the limit exceeds 2^64
			h.clock.Advance(1 << 32 * time.Microsecond)
			requireEqual(h, "much later", h.doOne(ratelimit.Peek, r, "k", 1).Remaining, r.Burst())
		}
		h.doOne(ratelimit.Reset, r, "k", 0)
	}
}

// testNoCount checks the errors of counts that a rule does not support.
func testNoCount(h harness) {
	fails := func(want error, op ratelimit.Op) {
		h.Helper()
		if !h.supports(op.Rule) {
			return
		}
		op.Key, op.N = "k", 1
		if _, err := do(h.Context(), h.store, []ratelimit.Op{op}); !errors.Is(err, want) {
			h.Errorf("%v of %v over %v: error %v, want %v", op.Kind, op.Rule, op.Interval, err, want)
		}
	}
	gcra := ratelimit.GCRA(3, time.Minute).WithBurst(5)
	fails(ratelimit.ErrNoCount, ratelimit.Op{Rule: gcra, Kind: ratelimit.Count})
	fails(ratelimit.ErrNoCount, ratelimit.Op{Rule: gcra, Kind: ratelimit.Add, Interval: time.Second})
	window := ratelimit.FixedWindow(3, time.Minute)
	fails(ratelimit.ErrInterval, ratelimit.Op{Rule: window, Kind: ratelimit.Count, Interval: time.Second})
	set := ratelimit.SlidingLog(1, time.Minute).WithoutLimit()
	for _, log := range []ratelimit.Rule{set, set.WithStream()} {
		fails(ratelimit.ErrInterval, ratelimit.Op{Rule: log, Kind: ratelimit.Count, Interval: time.Minute + 1})
		fails(ratelimit.ErrNoLimit, ratelimit.Op{Rule: log, Kind: ratelimit.Take})
	}
	if h.supports(gcra) {
		_, err := do(h.Context(), h.store, []ratelimit.Op{{Rule: gcra, Key: "k", N: 6, Kind: ratelimit.Take}})
		if !errors.Is(err, ratelimit.ErrTooLarge) {
			h.Errorf("6 of burst 5: error %v, want ErrTooLarge", err)
		}
	}
}
