package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func perMinute(h harness, limit int64) ratelimit.Rule {
	h.Helper()
	r := coarseRule(limit, time.Minute)
	h.alignClock(r)
	return r
}

func testTake(h harness) {
	r := perMinute(h, 10)
	for i := range int64(9) {
		res := h.doOne(ratelimit.Take, r, "k", 1)
		requireEqual(h, "Allowed", res.Allowed, true)
		requireEqual(h, "Limit", res.Limit, 10)
		requireEqual(h, "Remaining", res.Remaining, 9-i)
		requireEqual(h, "RetryAfter", res.RetryAfter, 0)
		requireEqual(h, "ResetAfter", res.ResetAfter, 65*time.Second)
	}
	res := h.doOne(ratelimit.Take, r, "k", 5)
	requireEqual(h, "5 at 9 used: Allowed", res.Allowed, false)
	requireEqual(h, "5 at 9 used: Violated", res.Violated, true)
	requireEqual(h, "5 at 9 used: Remaining", res.Remaining, 1)
	requireEqual(h, "count after a denial", h.count(r, "k", 0), 9)
	res = h.doOne(ratelimit.Take, r, "k", 1)
	requireEqual(h, "tenth: Allowed", res.Allowed, true)
	requireEqual(h, "tenth: when the next unit passes", res.RetryAfter, 65*time.Second)
	requireEqual(h, "eleventh: Allowed", h.doOne(ratelimit.Take, r, "k", 1).Allowed, false)
	if err := h.doOne(ratelimit.Take, r, "k", 1).Err(); err == nil {
		h.Fatal("Err of a denial is nil")
	}
}

func testRetryAfter(h harness) {
	r := perMinute(h, 10)
	for range 10 { // one at 0 s, 5 s … 45 s
		h.doOne(ratelimit.Take, r, "k", 1)
		h.clock.Advance(5 * time.Second)
	}
	for _, n := range []int64{1, 2, 3} {
		res := h.doOne(ratelimit.Peek, r, "k", n)
		want := time.Duration(10+5*n) * time.Second // the bucket at 0 s is out of the window at 65 s
		requireEqual(h, "RetryAfter", res.RetryAfter, want)
		requireEqual(h, "ResetAfter", res.ResetAfter, 60*time.Second)
	}
	wait := h.requireDenied(r, "k", 3).RetryAfter
	h.clock.Advance(wait - time.Microsecond)
	requireEqual(h, "a microsecond early: RetryAfter", h.requireDenied(r, "k", 3).RetryAfter, time.Microsecond)
	h.clock.Advance(time.Microsecond)
	requireEqual(h, "in time: Allowed", h.doOne(ratelimit.Take, r, "k", 3).Allowed, true)
}

func testPeek(h harness) {
	r := perMinute(h, 3)
	requireEqual(h, "unknown key: Allowed", h.doOne(ratelimit.Peek, r, "k", 3).Allowed, true)
	h.doOne(ratelimit.Take, r, "k", 2)
	for range 5 {
		requireEqual(h, "Remaining", h.doOne(ratelimit.Peek, r, "k", 1).Remaining, 1)
	}
	res := h.doOne(ratelimit.Peek, r, "k", 2)
	requireEqual(h, "2 of 1: Allowed", res.Allowed, false)
	requireEqual(h, "2 of 1: Violated", res.Violated, true)
	requireEqual(h, "count", h.count(r, "k", 0), 2)
}

func testAdd(h harness) {
	r := perMinute(h, 3)
	res := h.doOne(ratelimit.Add, r, "k", 8)
	requireEqual(h, "Allowed", res.Allowed, true)
	requireEqual(h, "Count", res.Count, 8)
	requireEqual(h, "Remaining", res.Remaining, 0)
	requireEqual(h, "RetryAfter", res.RetryAfter, 65*time.Second)
}

func testLowerLimit(h harness) {
	h.doOne(ratelimit.Take, perMinute(h, 10), "k", 8)
	low := perMinute(h, 5)
	res := h.doOne(ratelimit.Take, low, "k", 1)
	requireEqual(h, "8 of 5 used: Allowed", res.Allowed, false)
	requireEqual(h, "8 of 5 used: Remaining", res.Remaining, 0)
	requireEqual(h, "8 of 10 used: Remaining", h.doOne(ratelimit.Peek, perMinute(h, 10), "k", 1).Remaining, 2)
}

func (h harness) refund(r ratelimit.Rule, key string, c ratelimit.Receipt) bool {
	h.Helper()
	return h.do(ratelimit.Op{Rule: r, Key: key, Kind: ratelimit.Refund, Receipt: c})[0].Allowed
}

func testRefund(h harness) {
	r := perMinute(h, 10)
	h.doOne(ratelimit.Take, r, "k", 2)
	h.clock.Advance(10 * time.Second)
	charge := h.doOne(ratelimit.Take, r, "k", 3).Receipt
	h.clock.Advance(10 * time.Second)
	h.doOne(ratelimit.Take, r, "k", 4)
	requireEqual(h, "refunded", h.refund(r, "k", charge), true)
	requireEqual(h, "count(5s)", h.count(r, "k", 5*time.Second), 4)
	requireEqual(h, "count(15s)", h.count(r, "k", 15*time.Second), 4)
	requireEqual(h, "count(20s)", h.count(r, "k", 20*time.Second), 6)
	requireEqual(h, "Remaining", h.doOne(ratelimit.Peek, r, "k", 1).Remaining, 4)
	requireEqual(h, "refunded again", h.refund(r, "k", charge), false)
}

func testRefundExpired(h harness) {
	r := perMinute(h, 10)
	charge := h.doOne(ratelimit.Take, r, "k", 3).Receipt
	requireEqual(h, "refund of nothing", h.refund(r, "k", ratelimit.Receipt{}), false)
	requireEqual(h, "refund of an unknown key", h.refund(r, "other", charge), false)
	h.clock.Advance(time.Microsecond)
	h.doOne(ratelimit.Reset, r, "k", 0)
	h.doOne(ratelimit.Take, r, "k", 5)
	requireEqual(h, "refund of a charge before the reset", h.refund(r, "k", charge), false)
	requireEqual(h, "count", h.count(r, "k", 0), 5)

	charge = h.doOne(ratelimit.Take, r, "k", 3).Receipt
	h.clock.Advance(600 * time.Second)
	h.doOne(ratelimit.Take, r, "k", 5)
	requireEqual(h, "refund within the span", h.refund(r, "k", charge), true)
	charge = h.doOne(ratelimit.Take, r, "k", 3).Receipt
	h.clock.Advance(605 * time.Second)
	h.doOne(ratelimit.Take, r, "k", 5)
	requireEqual(h, "refund beyond the span", h.refund(r, "k", charge), false)
	requireEqual(h, "count", h.count(r, "k", 0), 5)
	// The bucket that has taken the old one's place in a ring is over, too.
	h.clock.Advance(5 * time.Second)
	requireEqual(h, "refund a bucket later", h.refund(r, "k", charge), false)
	requireEqual(h, "count", h.count(r, "k", 0), 5)
}

func testReset(h harness) {
	r := perMinute(h, 3)
	other := coarseRule(3, time.Minute).WithName("other")
	h.doOne(ratelimit.Reset, r, "unknown", 0)
	h.doOne(ratelimit.Take, r, "k", 3)
	h.doOne(ratelimit.Take, other, "k", 2)
	h.doOne(ratelimit.Reset, r, "k", 0)
	requireEqual(h, "count", h.count(r, "k", 0), 0)
	requireEqual(h, "count of another rule", h.count(other, "k", 0), 2)
	requireEqual(h, "Remaining", h.doOne(ratelimit.Peek, r, "k", 1).Remaining, 3)
}

func testInvalid(h harness) {
	r, counts := perMinute(h, 3), ratelimit.Buckets(ratelimit.BucketOptions{})
	good := ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take}
	for _, c := range []struct {
		name string
		op   ratelimit.Op
		want error
	}{
		{"zero op", ratelimit.Op{}, ratelimit.ErrOp},
		{"no rule", ratelimit.Op{Key: "k", N: 1, Kind: ratelimit.Take}, ratelimit.ErrOp},
		{"no kind", ratelimit.Op{Rule: r, Key: "k", N: 1}, ratelimit.ErrOp},
		{"unknown kind", ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: 99}, ratelimit.ErrOp},
		{"no key", ratelimit.Op{Rule: r, N: 1, Kind: ratelimit.Take}, ratelimit.ErrOp},
		{"long key", ratelimit.Op{Rule: r, Key: strings.Repeat("k", 1<<20), N: 1, Kind: ratelimit.Take}, ratelimit.ErrOp},
		{"n of 0", ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Take}, ratelimit.ErrOp},
		{"n below 0", ratelimit.Op{Rule: r, Key: "k", N: -1, Kind: ratelimit.Add}, ratelimit.ErrOp},
		{"n above the limit", ratelimit.Op{Rule: r, Key: "k", N: 4, Kind: ratelimit.Take}, ratelimit.ErrTooLarge},
		{"peek above the limit", ratelimit.Op{Rule: r, Key: "k", N: 4, Kind: ratelimit.Peek}, ratelimit.ErrTooLarge},
		{"n far above the limit", ratelimit.Op{Rule: r, Key: "k", N: 1 << 60, Kind: ratelimit.Take}, ratelimit.ErrTooLarge},
		{"an add of more than there can be", ratelimit.Op{Rule: counts, Key: "k", N: 1 << 60, Kind: ratelimit.Add}, ratelimit.ErrTooLarge},
		{"n above 2^53", ratelimit.Op{Rule: r, Key: "k", N: 1<<53 + 1, Kind: ratelimit.Add}, ratelimit.ErrOverflow},
		{"take without a limit", ratelimit.Op{Rule: counts, Key: "k", N: 1, Kind: ratelimit.Take}, ratelimit.ErrNoLimit},
		{"peek without a limit", ratelimit.Op{Rule: counts, Key: "k", N: 1, Kind: ratelimit.Peek}, ratelimit.ErrNoLimit},
		{"negative interval", ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Count, Interval: -1}, ratelimit.ErrOp},
	} {
		for _, ops := range [][]ratelimit.Op{{good, c.op}, {c.op}} {
			if _, err := do(h.Context(), h.store, ops); !errors.Is(err, c.want) {
				h.Errorf("%s, %d ops: error %v, want %v", c.name, len(ops), err, c.want)
			}
		}
	}
	requireEqual(h, "count after calls that were refused", h.count(r, "k", 0), 0)
	requireEqual(h, "results of no ops", len(h.do()), 0)
}

// testOddKeys has keys of all bytes, of which no two are one.
func testOddKeys(h harness) {
	r := perMinute(h, 100)
	keys := []string{
		"k", "K", " k", "k ", "k\n", "k\r\nk: 1", "k\x00", "\x00", "\xff\xfe", "k:", ":", "*", "%", "\"", "\\",
		"{", "}", "{}", "{k}", "{k", "k}", "a{k}b", "}{", strings.Repeat("k", ratelimit.MaxKeyLen),
		strings.Repeat("}", ratelimit.MaxKeyLen), strings.Repeat("k", ratelimit.MaxKeyLen-1) + "\n",
	}
	for i, key := range keys {
		h.doOne(ratelimit.Take, r, key, int64(i+1))
	}
	for i, key := range keys {
		requireEqual(h, fmt.Sprintf("count of %.20q", key), h.count(r, key, 0), int64(i+1))
	}
}
