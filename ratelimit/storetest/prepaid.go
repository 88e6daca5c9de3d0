package storetest

import (
	"errors"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func takePrepaid(r ratelimit.Rule, key string, n int64, ahead time.Duration) ratelimit.Op {
	return ratelimit.Op{Rule: r, Key: key, N: n, Kind: ratelimit.Take, Prepaid: ahead}
}

// testPrepaid takes units that may be spent within a second, and gives some back.
func testPrepaid(h harness) {
	h.each(100, 60*time.Second, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		if r.Algorithm() == "buckets" {
			h.align(r)
		}
		op := takePrepaid(r, key, 40, time.Second)
		res := h.do(op)[0]
		same(h, "Allowed", res.Allowed, true)
		same(h, "good for", op.ValidFor(res), time.Second-time.Microsecond)
		switch r.Algorithm() {
		case "log":
			same(h, "Remaining", res.Remaining, 60)
			same(h, "until they leave the window", res.ResetAfter, 61*time.Second)
		case "gcra": // of which 1.7 units fall in a second
			same(h, "Remaining", res.Remaining, 58)
			same(h, "until it is empty", res.ResetAfter, 25*time.Second)
		default:
			same(h, "Remaining", res.Remaining, 60)
		}
		rest := res.Receipt
		rest.N = 30
		same(h, "give 30 back", h.refund(r, key, rest), true)
		rest.N = 11
		same(h, "give 11 of 10 back", h.refund(r, key, rest), false)
		if counted(r) {
			same(h, "count", h.count(r, key, 0), 10)
			h.clock.Advance(2 * time.Second)
			rest.N = 10
			same(h, "give 10 back, late", h.refund(r, key, rest), true)
			same(h, "count", h.count(r, key, 0), 0)
		}
	})
}

// testPrepaidRefund refunds all prepaid units, and then a part of the units that were
// charged before: no prepaid unit is left.
func testPrepaidRefund(h harness) {
	h.each(100, 60*time.Second, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		if r.Algorithm() == "buckets" {
			h.align(r)
		}
		first := h.one(ratelimit.Take, r, key, 3).Receipt
		ahead := h.do(takePrepaid(r, key, 1, 1200*time.Millisecond))[0].Receipt
		same(h, "give 1 ahead back", h.refund(r, key, ahead), true)
		first.N = 2
		same(h, "give 2 of 3 back", h.refund(r, key, first), true)
		same(h, "Remaining", h.one(ratelimit.Peek, r, key, 1).Remaining, 99)
	})
}

// testPrepaidKeepsOlderUnits takes prepaid units, then a unit for now: older units do not leave earlier.
func testPrepaidKeepsOlderUnits(h harness) {
	h.each(10, 12*time.Second, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		if r.Algorithm() != "log" {
			return
		}
		h.one(ratelimit.Take, r, key, 5)
		h.clock.Advance(10 * time.Second)
		h.do(takePrepaid(r, key, 1, 3*time.Second))
		h.clock.Advance(time.Second)
		h.one(ratelimit.Take, r, key, 4)
		h.clock.Advance(time.Second - time.Microsecond)
		res := h.one(ratelimit.Take, r, key, 1)
		same(h, "before the five leave: Allowed", res.Allowed, false)
		same(h, "before the five leave: RetryAfter", res.RetryAfter, time.Microsecond)
		same(h, "before the five leave: ResetAfter", res.ResetAfter, 13*time.Second+time.Microsecond)
		h.clock.Advance(time.Microsecond)
		same(h, "after: Remaining", h.one(ratelimit.Peek, r, key, 1).Remaining, 5)
		h.clock.Advance(13*time.Second - time.Microsecond)
		same(h, "before the others leave: Remaining", h.one(ratelimit.Peek, r, key, 1).Remaining, 5)
		h.clock.Advance(time.Microsecond)
		same(h, "after: Remaining", h.one(ratelimit.Peek, r, key, 1).Remaining, 10)
	})
}

func testPrepaidInvalid(h harness) {
	h.each(10, 2*time.Hour, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		good := takePrepaid(r, key, 1, time.Minute)
		peek, long, back := good, good, good
		peek.Kind, long.Prepaid, back.Prepaid = ratelimit.Peek, time.Hour+time.Microsecond, -time.Second
		for name, ops := range map[string][]ratelimit.Op{
			"a peek": {peek}, "too long": {long}, "negative": {back},
			"in a group": {good, take(r, 1)}, "in a group, later": {take(r, 1), good},
		} {
			for i := range ops {
				ops[i].Key = key
			}
			if _, err := do(h.Context(), h.store, ops); !errors.Is(err, ratelimit.ErrOp) {
				h.Errorf("%v: %s: error %v, want ErrOp", r, name, err)
			}
		}
		same(h, "Remaining", h.one(ratelimit.Peek, r, key, 1).Remaining, 10)
		if r.Algorithm() == "gcra" { // 5 of 10 fall in an hour
			_, err := do(h.Context(), h.store, []ratelimit.Op{takePrepaid(r, key, 6, time.Hour)})
			same(h, "6 and 5 of burst 10: ErrTooLarge", errors.Is(err, ratelimit.ErrTooLarge), true)
			same(h, "5 and 5 of burst 10: Remaining", h.do(takePrepaid(r, key, 5, time.Hour))[0].Remaining, 0)
		}
	})
}
