package storetest

import (
	"errors"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func take(r ratelimit.Rule, n int64) ratelimit.Op {
	return ratelimit.Op{Rule: r, Key: "k", N: n, Kind: ratelimit.Take}
}

func pairOfRules(h harness) (short, long ratelimit.Rule) {
	h.Helper()
	short = coarse(3, 10*time.Second)
	long = coarse(5, time.Minute)
	h.align(short)
	return short, long
}

func testGroup(h harness) {
	short, long := pairOfRules(h)
	res := h.do(take(short, 2), take(long, 2))
	same(h, "Remaining of the short", res[0].Remaining, 1)
	same(h, "Remaining of the long", res[1].Remaining, 3)
	res = h.do(take(short, 2), take(long, 2))
	same(h, "the short: Allowed", res[0].Allowed, false)
	same(h, "the short: Violated", res[0].Violated, true)
	same(h, "the long: Allowed", res[1].Allowed, false)
	same(h, "the long: Violated", res[1].Violated, false)
	same(h, "the long: RetryAfter", res[1].RetryAfter, 0)
	same(h, "the long: count", h.count(long, "k", 0), 2)
	h.clock.Advance(res[0].RetryAfter)
	same(h, "after RetryAfter", h.do(take(short, 2), take(long, 2))[0].Allowed, true)
	res = h.do(take(short, 1), take(long, 2))
	same(h, "denied by the second: Allowed", res[0].Allowed, false)
	same(h, "denied by the second: Violated", res[0].Violated, false)
	same(h, "denied by the second: who", res[1].Violated, true)
	same(h, "the short: count", h.count(short, "k", 0), 2)
}

// testGroupOneCounter checks that the takes of a group have to pass together.
func testGroupOneCounter(h harness) {
	_, long := pairOfRules(h)
	res := h.do(take(long, 2), take(long, 3))
	same(h, "2 and 3 of 5: Allowed", res[0].Allowed && res[1].Allowed, true)
	same(h, "2 and 3 of 5: Remaining", res[1].Remaining, 0)
	h.one(ratelimit.Reset, long, "k", 0)
	h.one(ratelimit.Take, long, "k", 1)
	res = h.do(take(long, 2), take(long, 3))
	same(h, "2 and 3 of 4: Allowed", res[0].Allowed || res[1].Allowed, false)
	same(h, "2 and 3 of 4: count", h.count(long, "k", 0), 1)
	_, err := h.store.Do(h.Context(), []ratelimit.Op{take(long, 3), take(long, 3)})
	if !errors.Is(err, ratelimit.ErrTooLarge) {
		h.Fatalf("3 and 3 of limit 5: error %v, want ErrTooLarge", err)
	}
}

func testDeniedGroup(h harness) {
	short, long := pairOfRules(h)
	charge := h.one(ratelimit.Take, long, "k", 4).Receipt
	count := ratelimit.Op{Rule: long, Key: "k", Kind: ratelimit.Count}
	res := h.do(
		count,
		ratelimit.Op{Rule: long, Key: "k", Kind: ratelimit.Refund, Receipt: charge},
		ratelimit.Op{Rule: long, Key: "k", Kind: ratelimit.Reset},
		ratelimit.Op{Rule: short, Key: "k", N: 1, Kind: ratelimit.Add},
		take(long, 2),
		ratelimit.Op{Rule: short, Key: "k", N: 3, Kind: ratelimit.Peek},
		count,
	)
	for i, want := range []bool{true, false, false, false, false, true, true} {
		if res[i].Allowed != want {
			h.Errorf("op %d: Allowed is %v, want %v", i, res[i].Allowed, want)
		}
	}
	same(h, "who denied", res[4].Violated, true)
	same(h, "a refund in a denied group: Limit", res[1].Limit, 5)
	same(h, "a refund in a denied group: Remaining", res[1].Remaining, 0)
	same(h, "count before", res[0].Count, 4)
	same(h, "count after", res[6].Count, 4)
	same(h, "count of the add", h.count(short, "k", 0), 0)
}

// testAddInDeniedGroup adds more than ever passes, to a counter that is unknown, that is
// new, and whose units have left.
func testAddInDeniedGroup(h harness) {
	h.each(5, time.Minute, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		full := h.rulesOf(1, time.Hour, ratelimit.Block{})[0]
		h.one(ratelimit.Take, full, key, 1)
		denied := func(what string, left int64) {
			h.Helper()
			add := ratelimit.Op{Rule: r, Key: key, N: 9, Kind: ratelimit.Add}
			res := h.do(add, ratelimit.Op{Rule: full, Key: key, N: 1, Kind: ratelimit.Take})
			same(h, what+": Allowed", res[0].Allowed || res[1].Allowed, false)
			same(h, what+": Violated", res[0].Violated, false)
			same(h, what+": Remaining", res[0].Remaining, left)
			same(h, what+": RetryAfter", res[0].RetryAfter, res[0].ResetAfter)
			same(h, what+": no wait", res[0].RetryAfter == 0, left == 5)
		}
		denied("unknown", 5)
		h.one(ratelimit.Take, r, key, 2)
		denied("new", 3)
		h.clock.Advance(70 * time.Second)
		denied("empty", 5)
	})
}

func testNewGroup(h harness) {
	short, long := pairOfRules(h)
	apart := take(short, 2)
	apart.NewGroup = true
	other := take(long, 1)
	other.Key = "other"
	res := h.do(take(short, 2), take(long, 5), apart, take(long, 5), other, take(long, 1))
	for i, want := range []bool{true, true, false, false, true, false} {
		if res[i].Allowed != want {
			h.Errorf("op %d: Allowed is %v, want %v", i, res[i].Allowed, want)
		}
	}
	same(h, "count of the short", h.count(short, "k", 0), 2)
}

// testResetInGroup charges a counter that the same group has reset.
func testResetInGroup(h harness) {
	h.each(10, time.Minute, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		old := h.one(ratelimit.Add, r, key, 2).Receipt
		h.one(ratelimit.Add, r, key, 7)
		h.clock.Advance(time.Microsecond)
		// Of a reset, n says nothing.
		reset := ratelimit.Op{Rule: r, Key: key, N: 1 << 53, Kind: ratelimit.Reset}
		res := h.do(reset, ratelimit.Op{Rule: r, Key: key, N: 2, Kind: ratelimit.Add})
		same(h, "Remaining after a reset", res[1].Remaining, 8)
		same(h, "Remaining later", h.one(ratelimit.Peek, r, key, 1).Remaining, 8)
		if counted(r) && r.Algorithm() != "window" {
			same(h, "refund of what was reset", h.refund(r, key, old), false)
		}
	})
}
