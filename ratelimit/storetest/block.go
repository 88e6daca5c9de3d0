package storetest

import (
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// testBlock checks that the third denial starts a block, and what the results are during and after the block.
func testBlock(h harness) {
	block := ratelimit.Block{After: 3, For: 30 * time.Second}
	h.forEachRule(10, 6*time.Second, block, func(h harness, r ratelimit.Rule, key string) {
		h.doOne(ratelimit.Take, r, key, 10)
		for range 2 {
			res := h.doOne(ratelimit.Take, r, key, 10)
			requireEqual(h, "denied", res.Allowed, false)
			if res.RetryAfter >= block.For {
				h.Fatalf("%v: RetryAfter is %v before the block", r, res.RetryAfter)
			}
			requireEqual(h, "before the block: Blocked", res.Blocked, 0)
			requireEqual(h, "a peek doesn't add up", h.doOne(ratelimit.Peek, r, key, 10).Allowed, false)
		}
		res := h.doOne(ratelimit.Take, r, key, 10)
		requireEqual(h, "the third: RetryAfter", res.RetryAfter, block.For)
		requireEqual(h, "the third: ResetAfter", res.ResetAfter, block.For)
		requireEqual(h, "the third: Blocked", res.Blocked, block.For)
		for range 3 {
			h.clock.Advance(9 * time.Second) // longer than the rule would deny without a block
			for _, kind := range []ratelimit.Kind{ratelimit.Take, ratelimit.Peek} {
				res := h.doOne(kind, r, key, 1)
				requireEqual(h, "while blocked: Allowed", res.Allowed, false)
				requireEqual(h, "while blocked: Violated", res.Violated, true)
				requireEqual(h, "while blocked: Remaining", res.Remaining, 0)
			}
		}
		res = h.doOne(ratelimit.Take, r, key, 1)
		requireEqual(h, "what is left: RetryAfter", res.RetryAfter, 3*time.Second)
		requireEqual(h, "what is left: Blocked", res.Blocked, 3*time.Second)
		requireEqual(h, "a peek tells, too", h.doOne(ratelimit.Peek, r, key, 1).Blocked, 3*time.Second)
		if canCount(r) {
			requireEqual(h, "count", h.count(r, key, 0), 0)
			added := h.doOne(ratelimit.Add, r, key, 2)
			requireEqual(h, "Add: Allowed", added.Allowed, true)
			requireEqual(h, "Add: Remaining", added.Remaining, 8)
			requireEqual(h, "Add: RetryAfter", added.RetryAfter, 0)
			requireEqual(h, "count after Add", h.count(r, key, 0), 2)
		}
		h.clock.Advance(3 * time.Second)
		requireEqual(h, "after the block", h.doOne(ratelimit.Take, r, key, 1).Allowed, true)
	})
}

// testBlockResets checks that a reset ends a block, and that denials more than a Per apart do not start one.
func testBlockResets(h harness) {
	block := ratelimit.Block{After: 2, For: time.Minute}
	h.forEachRule(1, 6*time.Second, block, func(h harness, r ratelimit.Rule, key string) {
		h.doOne(ratelimit.Take, r, key, 1)
		h.doOne(ratelimit.Take, r, key, 1)
		h.doOne(ratelimit.Take, r, key, 1)
		res := h.doOne(ratelimit.Take, r, key, 1)
		requireEqual(h, "blocked", res.RetryAfter, time.Minute)
		h.doOne(ratelimit.Reset, r, key, 0)
		requireEqual(h, "after Reset", h.doOne(ratelimit.Take, r, key, 1).Allowed, true)

		// The first denial no longer counts after a Per, so the next denial counts as the first.
		h.doOne(ratelimit.Take, r, key, 1)
		h.clock.Advance(6 * time.Second)
		h.doOne(ratelimit.Add, r, key, 1)
		if wait := h.doOne(ratelimit.Take, r, key, 1).RetryAfter; wait >= time.Minute {
			h.Fatalf("%v: blocked for %v by denials that are more than Per apart", r, wait)
		}
		requireEqual(h, "the next is the second", h.doOne(ratelimit.Take, r, key, 1).RetryAfter, time.Minute)
	})
}
