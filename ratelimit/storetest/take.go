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

func (h harness) refund(r ratelimit.Rule, key string, c ratelimit.Receipt) bool {
	h.Helper()
	return h.do(ratelimit.Op{Rule: r, Key: key, Kind: ratelimit.Refund, Receipt: c})[0].Allowed
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

// testOddKeys checks that different keys have different counters, also if they have unusual bytes.
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
