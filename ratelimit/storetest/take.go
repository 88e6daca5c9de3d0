package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func minute(h harness, limit int64) ratelimit.Rule {
	h.Helper()
	r := coarse(limit, time.Minute)
	h.align(r)
	return r
}

func testTake(h harness) {
	r := minute(h, 10)
	for i := range int64(9) {
		res := h.one(ratelimit.Take, r, "k", 1)
		same(h, "Allowed", res.Allowed, true)
		same(h, "Limit", res.Limit, 10)
		same(h, "Remaining", res.Remaining, 9-i)
		same(h, "RetryAfter", res.RetryAfter, 0)
		same(h, "ResetAfter", res.ResetAfter, 65*time.Second)
	}
	res := h.one(ratelimit.Take, r, "k", 5)
	same(h, "5 at 9 used: Allowed", res.Allowed, false)
	same(h, "5 at 9 used: Violated", res.Violated, true)
	same(h, "5 at 9 used: Remaining", res.Remaining, 1)
	same(h, "count after a denial", h.count(r, "k", 0), 9)
	res = h.one(ratelimit.Take, r, "k", 1)
	same(h, "tenth: Allowed", res.Allowed, true)
	same(h, "tenth: when the next unit passes", res.RetryAfter, 65*time.Second)
	same(h, "eleventh: Allowed", h.one(ratelimit.Take, r, "k", 1).Allowed, false)
	if err := h.one(ratelimit.Take, r, "k", 1).Err(); err == nil {
		h.Fatal("Err of a denial is nil")
	}
}

func testRetryAfter(h harness) {
	r := minute(h, 10)
	for range 10 { // one at 0 s, 5 s … 45 s
		h.one(ratelimit.Take, r, "k", 1)
		h.clock.Advance(5 * time.Second)
	}
	for _, n := range []int64{1, 2, 3} {
		res := h.one(ratelimit.Peek, r, "k", n)
		want := time.Duration(10+5*n) * time.Second // the bucket at 0 s is out of the window at 65 s
		same(h, "RetryAfter", res.RetryAfter, want)
		same(h, "ResetAfter", res.ResetAfter, 60*time.Second)
	}
	wait := h.denied(r, "k", 3).RetryAfter
	h.clock.Advance(wait - time.Microsecond)
	same(h, "a microsecond early: RetryAfter", h.denied(r, "k", 3).RetryAfter, time.Microsecond)
	h.clock.Advance(time.Microsecond)
	same(h, "in time: Allowed", h.one(ratelimit.Take, r, "k", 3).Allowed, true)
}

func testPeek(h harness) {
	r := minute(h, 3)
	same(h, "unknown key: Allowed", h.one(ratelimit.Peek, r, "k", 3).Allowed, true)
	h.one(ratelimit.Take, r, "k", 2)
	for range 5 {
		same(h, "Remaining", h.one(ratelimit.Peek, r, "k", 1).Remaining, 1)
	}
	res := h.one(ratelimit.Peek, r, "k", 2)
	same(h, "2 of 1: Allowed", res.Allowed, false)
	same(h, "2 of 1: Violated", res.Violated, true)
	same(h, "count", h.count(r, "k", 0), 2)
}

func testAdd(h harness) {
	r := minute(h, 3)
	res := h.one(ratelimit.Add, r, "k", 8)
	same(h, "Allowed", res.Allowed, true)
	same(h, "Count", res.Count, 8)
	same(h, "Remaining", res.Remaining, 0)
	same(h, "RetryAfter", res.RetryAfter, 65*time.Second)
}

func testLowerLimit(h harness) {
	h.one(ratelimit.Take, minute(h, 10), "k", 8)
	low := minute(h, 5)
	res := h.one(ratelimit.Take, low, "k", 1)
	same(h, "8 of 5 used: Allowed", res.Allowed, false)
	same(h, "8 of 5 used: Remaining", res.Remaining, 0)
	same(h, "8 of 10 used: Remaining", h.one(ratelimit.Peek, minute(h, 10), "k", 1).Remaining, 2)
}

func (h harness) refund(r ratelimit.Rule, key string, c ratelimit.Receipt) bool {
	h.Helper()
	return h.do(ratelimit.Op{Rule: r, Key: key, Kind: ratelimit.Refund, Receipt: c})[0].Allowed
}

func testRefund(h harness) {
	r := minute(h, 10)
	h.one(ratelimit.Take, r, "k", 2)
	h.clock.Advance(10 * time.Second)
	charge := h.one(ratelimit.Take, r, "k", 3).Receipt
	h.clock.Advance(10 * time.Second)
	h.one(ratelimit.Take, r, "k", 4)
	same(h, "refunded", h.refund(r, "k", charge), true)
	same(h, "count(5s)", h.count(r, "k", 5*time.Second), 4)
	same(h, "count(15s)", h.count(r, "k", 15*time.Second), 4)
	same(h, "count(20s)", h.count(r, "k", 20*time.Second), 6)
	same(h, "Remaining", h.one(ratelimit.Peek, r, "k", 1).Remaining, 4)
	same(h, "refunded again", h.refund(r, "k", charge), false)
}

func testRefundGone(h harness) {
	r := minute(h, 10)
	charge := h.one(ratelimit.Take, r, "k", 3).Receipt
	same(h, "refund of nothing", h.refund(r, "k", ratelimit.Receipt{}), false)
	same(h, "refund of an unknown key", h.refund(r, "other", charge), false)
	h.clock.Advance(time.Microsecond)
	h.one(ratelimit.Reset, r, "k", 0)
	h.one(ratelimit.Take, r, "k", 5)
	same(h, "refund of a charge before the reset", h.refund(r, "k", charge), false)
	same(h, "count", h.count(r, "k", 0), 5)

	charge = h.one(ratelimit.Take, r, "k", 3).Receipt
	h.clock.Advance(600 * time.Second)
	h.one(ratelimit.Take, r, "k", 5)
	same(h, "refund within the span", h.refund(r, "k", charge), true)
	charge = h.one(ratelimit.Take, r, "k", 3).Receipt
	h.clock.Advance(605 * time.Second)
	h.one(ratelimit.Take, r, "k", 5)
	same(h, "refund beyond the span", h.refund(r, "k", charge), false)
	same(h, "count", h.count(r, "k", 0), 5)
	// The bucket that has taken the old one's place in a ring is over, too.
	h.clock.Advance(5 * time.Second)
	same(h, "refund a bucket later", h.refund(r, "k", charge), false)
	same(h, "count", h.count(r, "k", 0), 5)
}

func testReset(h harness) {
	r := minute(h, 3)
	other := coarse(3, time.Minute).WithName("other")
	h.one(ratelimit.Reset, r, "unknown", 0)
	h.one(ratelimit.Take, r, "k", 3)
	h.one(ratelimit.Take, other, "k", 2)
	h.one(ratelimit.Reset, r, "k", 0)
	same(h, "count", h.count(r, "k", 0), 0)
	same(h, "count of another rule", h.count(other, "k", 0), 2)
	same(h, "Remaining", h.one(ratelimit.Peek, r, "k", 1).Remaining, 3)
}

func testInvalid(h harness) {
	r, counts := minute(h, 3), ratelimit.Buckets(ratelimit.BucketOptions{})
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
		{"negative interval", ratelimit.Op{Rule: r, Key: "k", Kind: ratelimit.Count, Interval: -1}, ratelimit.ErrOp},
	} {
		for _, ops := range [][]ratelimit.Op{{good, c.op}, {c.op}} {
			if _, err := do(h.Context(), h.store, ops); !errors.Is(err, c.want) {
				h.Errorf("%s, %d ops: error %v, want %v", c.name, len(ops), err, c.want)
			}
		}
	}
	same(h, "count after calls that were refused", h.count(r, "k", 0), 0)
	same(h, "results of no ops", len(h.do()), 0)
}

// testOddKeys has keys of all bytes, of which no two are one.
func testOddKeys(h harness) {
	r := minute(h, 100)
	keys := []string{
		"k", "K", " k", "k ", "k\n", "k\r\nk: 1", "k\x00", "\x00", "\xff\xfe", "k:", ":", "*", "%", "\"", "\\",
		"{", "}", "{}", "{k}", "{k", "k}", "a{k}b", "}{", strings.Repeat("k", ratelimit.MaxKeyLen),
		strings.Repeat("}", ratelimit.MaxKeyLen), strings.Repeat("k", ratelimit.MaxKeyLen-1) + "\n",
	}
	for i, key := range keys {
		h.one(ratelimit.Take, r, key, int64(i+1))
	}
	for i, key := range keys {
		same(h, fmt.Sprintf("count of %.20q", key), h.count(r, key, 0), int64(i+1))
	}
}
