package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// rulesFor returns a rule of each algorithm and encoding that the store supports. If limit is 0, it returns rules that only
// count.
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

// coarseRule returns a rule that counts in buckets of 5 s over 10 minutes.
func coarseRule(limit int64, per time.Duration) ratelimit.Rule {
	return ratelimit.Buckets(ratelimit.BucketOptions{Limit: limit, Per: per, Interval: 5 * time.Second, Span: 10 * time.Minute, Expiry: 20 * time.Minute})
}

// forEachRule runs a test for every rule that the store supports, each on a key of its own.
func (h harness) forEachRule(limit int64, per time.Duration, block ratelimit.Block, test func(h harness, r ratelimit.Rule, key string)) {
	for _, r := range h.rulesFor(limit, per, block) {
		test(h, r, r.String())
	}
}

func canCount(r ratelimit.Rule) bool { return r.Algorithm() != "gcra" }

// testLimitIsExact takes single units, then too many, and then waits for RetryAfter and ResetAfter.
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
			if wait == 0 { // a window begins anew as a whole
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

// testRates takes at every rate from 1 to 1000 in a minute.
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

// testLimitsOfOneCounter gives callers of one counter different limits.
func testLimitsOfOneCounter(h harness) {
	h.forEachRule(10, 6*time.Second, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		low := r.WithLimit(5)
		high := r.WithLimit(20)
		h.doOne(ratelimit.Take, r, key, 8)
		res := h.doOne(ratelimit.Take, low, key, 1)
		requireEqual(h, "8 of 5 used: Allowed", res.Allowed, false)
		requireEqual(h, "8 of 5 used: Remaining", res.Remaining, 0)
		requireEqual(h, "8 of 5 used: Limit", res.Limit, 5)
		requireEqual(h, "8 of 10 used: Remaining", h.doOne(ratelimit.Peek, r, key, 1).Remaining, 2)
		res = h.doOne(ratelimit.Take, high, key, 12)
		requireEqual(h, "8 of 20 used: Allowed", res.Allowed, true)
		requireEqual(h, "20 of 20 used: Remaining", res.Remaining, 0)
		h.doOne(ratelimit.Reset, low, key, 0)
		requireEqual(h, "reset by another tier", h.doOne(ratelimit.Peek, high, key, 1).Remaining, 20)
	})
}

// testRefunds refunds charges, once, in whole and in parts, and receipts that the store must refuse.
func testRefunds(h harness) {
	h.forEachRule(10, 6*time.Second, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		charge := h.doOne(ratelimit.Take, r, key, 3).Receipt
		requireEqual(h, "refund of nothing", h.refund(r, key, ratelimit.Receipt{}), false)
		requireEqual(h, "refund of another key", h.refund(r, key+"?", charge), false)
		requireEqual(h, "refund", h.refund(r, key, charge), true)
		requireEqual(h, "Remaining", h.doOne(ratelimit.Peek, r, key, 1).Remaining, 10)
		requireEqual(h, "refund again", h.refund(r, key, charge), false)

		part := h.doOne(ratelimit.Take, r, key, 5).Receipt
		part.N = 2
		requireEqual(h, "refund of a part", h.refund(r, key, part), true)
		requireEqual(h, "Remaining after a part", h.doOne(ratelimit.Peek, r, key, 1).Remaining, 7)
		h.doOne(ratelimit.Reset, r, key, 0)

		charge = h.doOne(ratelimit.Take, r, key, 3).Receipt
		h.clock.Advance(time.Second)
		later := h.doOne(ratelimit.Take, r, key, 2).Receipt
		requireEqual(h, "refund after another charge", h.refund(r, key, charge), canCount(r))
		requireEqual(h, "refund of the later one", h.refund(r, key, later), true)
		left := int64(10)
		if !canCount(r) {
			left = 8 // 3 were used, and 5/3 of them came back
		}
		requireEqual(h, "Remaining after both", h.doOne(ratelimit.Peek, r, key, 1).Remaining, left)

		h.doOne(ratelimit.Reset, r, key, 0)
		h.clock.Advance(time.Second)
		charge = h.doOne(ratelimit.Take, r, key, 4).Receipt
		h.clock.Advance(r.Per())
		requireEqual(h, "refund a Per later", h.refund(r, key, charge), r.Algorithm() == "buckets")
		h.doOne(ratelimit.Reset, r, key, 0)
		charge = h.doOne(ratelimit.Take, r, key, 4).Receipt
		h.doOne(ratelimit.Reset, r, key, 0)
		h.clock.Advance(time.Second)
		h.doOne(ratelimit.Take, r, key, 5)
		requireEqual(h, "refund of a charge before the reset", h.refund(r, key, charge), false)
		h.clock.Advance(13 * time.Second)
		charge = h.doOne(ratelimit.Take, r, key, 1).Receipt
		h.clock.Advance(13 * time.Second)
		requireEqual(h, "refund of an expired charge", h.refund(r, key, charge), false)
		h.doOne(ratelimit.Take, r, key, 1)
		requireEqual(h, "refund of what is gone, after another", h.refund(r, key, charge), false)
	})
}

// testAddNothing adds 0 units, which charges nothing and returns the state.
func testAddNothing(h harness) {
	block := ratelimit.Block{After: 1, For: time.Hour}
	h.forEachRule(10, 6*time.Second, block, func(h harness, r ratelimit.Rule, key string) {
		add := func(what string, remaining int64, used int64) ratelimit.Result {
			h.Helper()
			res, peek := h.doOne(ratelimit.Add, r, key, 0), h.doOne(ratelimit.Peek, r, key, 1)
			requireEqual(h, what+": Allowed", res.Allowed, true)
			requireEqual(h, what+": Remaining", res.Remaining, remaining)
			requireEqual(h, what+": RetryAfter", res.RetryAfter, peek.RetryAfter)
			requireEqual(h, what+": ResetAfter", res.ResetAfter, peek.ResetAfter)
			requireEqual(h, what+": Receipt", res.Receipt, ratelimit.Receipt{})
			if canCount(r) {
				requireEqual(h, what+": Count", res.Count, used)
			}
			return res
		}
		add("unknown", 10, 0)
		h.clock.Advance(time.Second)
		if r.Algorithm() == "buckets" {
			h.alignClock(r)
		}
		reset := h.doOne(ratelimit.Take, r, key, 4).ResetAfter
		if r.Algorithm() == "window" {
			requireEqual(h, "the window begins with a charge", reset, 6*time.Second)
		}
		requireEqual(h, "used: ResetAfter", add("used", 6, 4).ResetAfter, reset)
		h.doOne(ratelimit.Take, r, key, 6)
		add("full", 0, 10)
		other := r.WithName("other")
		nothing := ratelimit.Op{Rule: r, Key: key, Kind: ratelimit.Add}
		res := h.do(nothing, ratelimit.Op{Rule: other, Key: key, N: 3, Kind: ratelimit.Take}, nothing)
		requireEqual(h, "in a list: the take", res[1].Allowed, true)
		requireEqual(h, "in a list: before", res[0].Allowed, true)
		requireEqual(h, "in a list: after", res[2].Allowed, true)
		h.doOne(ratelimit.Take, r, key, 1)
		requireEqual(h, "blocked: the peek", h.doOne(ratelimit.Peek, r, key, 1).Blocked, time.Hour)
		requireEqual(h, "blocked: the add", h.do(nothing)[0], res[2])
		h.clock.Advance(time.Hour)
		add("much later", 10, 0)
	})
}

// testRefundsOfOthers charges several counters at the same time. A receipt refunds only its own counter.
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

// testOverflows adds up to 2^53 units, and one more.
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
			for range 1100 { // all together would leave 2^63
				requireEqual(h, "Allowed", h.doOne(ratelimit.Add, r, key, most).Allowed, true)
				h.clock.Advance(13 * time.Second)
			}
		}
	})
}

// testGCRAArithmeticLimits has GCRAs with the largest numbers.
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
		if r.Limit() == 1<<53 { // all comes back long before this product leaves 2^64
			h.clock.Advance(1 << 32 * time.Microsecond)
			requireEqual(h, "much later", h.doOne(ratelimit.Peek, r, "k", 1).Remaining, r.Burst())
		}
		h.doOne(ratelimit.Reset, r, "k", 0)
	}
}

// testNoCount counts with rules that cannot count, or not over the interval.
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
