package storetest

import (
	"errors"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func takeOp(r ratelimit.Rule, n int64) ratelimit.Op {
	return ratelimit.Op{Rule: r, Key: "k", N: n, Kind: ratelimit.Take}
}

func twoRules(h harness) (short, long ratelimit.Rule) {
	h.Helper()
	short = coarseRule(3, 10*time.Second)
	long = coarseRule(5, time.Minute)
	h.alignClock(short)
	return short, long
}

func testGroup(h harness) {
	short, long := twoRules(h)
	res := h.do(takeOp(short, 2), takeOp(long, 2))
	requireEqual(h, "Remaining of the short", res[0].Remaining, 1)
	requireEqual(h, "Remaining of the long", res[1].Remaining, 3)
	res = h.do(takeOp(short, 2), takeOp(long, 2))
	requireEqual(h, "the short: Allowed", res[0].Allowed, false)
	requireEqual(h, "the short: Violated", res[0].Violated, true)
	requireEqual(h, "the long: Allowed", res[1].Allowed, false)
	requireEqual(h, "the long: Violated", res[1].Violated, false)
	requireEqual(h, "the long: RetryAfter", res[1].RetryAfter, 0)
	requireEqual(h, "the long: count", h.count(long, "k", 0), 2)
	h.clock.Advance(res[0].RetryAfter)
	requireEqual(h, "after RetryAfter", h.do(takeOp(short, 2), takeOp(long, 2))[0].Allowed, true)
	res = h.do(takeOp(short, 1), takeOp(long, 2))
	requireEqual(h, "denied by the second: Allowed", res[0].Allowed, false)
	requireEqual(h, "denied by the second: Violated", res[0].Violated, false)
	requireEqual(h, "denied by the second: who", res[1].Violated, true)
	requireEqual(h, "the short: count", h.count(short, "k", 0), 2)
}

// testGroupOneCounter checks that all takes of a group must fit together if they charge the same counter.
func testGroupOneCounter(h harness) {
	_, long := twoRules(h)
	res := h.do(takeOp(long, 2), takeOp(long, 3))
	requireEqual(h, "2 and 3 of 5: Allowed", res[0].Allowed && res[1].Allowed, true)
	requireEqual(h, "2 and 3 of 5: Remaining", res[1].Remaining, 0)
	h.doOne(ratelimit.Reset, long, "k", 0)
	h.doOne(ratelimit.Take, long, "k", 1)
	res = h.do(takeOp(long, 2), takeOp(long, 3))
	requireEqual(h, "2 and 3 of 4: Allowed", res[0].Allowed || res[1].Allowed, false)
	requireEqual(h, "2 and 3 of 4: count", h.count(long, "k", 0), 1)
	_, err := h.store.Do(h.Context(), []ratelimit.Op{takeOp(long, 3), takeOp(long, 3)})
	if !errors.Is(err, ratelimit.ErrTooLarge) {
		h.Fatalf("3 and 3 of limit 5: error %v, want ErrTooLarge", err)
	}
}

// testNewGroup checks that NewGroup and a different key each begin a group, which is decided alone.
func testNewGroup(h harness) {
	short, long := twoRules(h)
	apart := takeOp(short, 2)
	apart.NewGroup = true
	other := takeOp(long, 1)
	other.Key = "other"
	res := h.do(takeOp(short, 2), takeOp(long, 5), apart, takeOp(long, 5), other, takeOp(long, 1))
	for i, want := range []bool{true, true, false, false, true, false} {
		if res[i].Allowed != want {
			h.Errorf("op %d: Allowed is %v, want %v", i, res[i].Allowed, want)
		}
	}
	requireEqual(h, "count of the short", h.count(short, "k", 0), 2)
}

// testResetInList checks that an add after a reset, in the same list of ops, begins at 0.
func testResetInList(h harness) {
	h.forEachRule(10, time.Minute, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		old := h.doOne(ratelimit.Add, r, key, 2).Receipt
		h.doOne(ratelimit.Add, r, key, 7)
		h.clock.Advance(time.Microsecond)
		// A store ignores the N of a reset.
		reset := ratelimit.Op{Rule: r, Key: key, N: 1 << 53, Kind: ratelimit.Reset}
		res := h.do(reset, ratelimit.Op{Rule: r, Key: key, N: 2, Kind: ratelimit.Add})
		requireEqual(h, "Remaining after a reset", res[1].Remaining, 8)
		requireEqual(h, "Remaining later", h.doOne(ratelimit.Peek, r, key, 1).Remaining, 8)
		if canCount(r) && r.Algorithm() != "window" {
			requireEqual(h, "refund of what was reset", h.refund(r, key, old), false)
		}
	})
}
