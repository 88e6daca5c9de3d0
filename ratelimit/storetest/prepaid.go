package storetest

import (
	"errors"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func takePrepaidOp(r ratelimit.Rule, key string, n int64, ahead time.Duration) ratelimit.Op {
	return ratelimit.Op{Rule: r, Key: key, N: n, Kind: ratelimit.Take, Prepaid: ahead}
}

// testPrepaid takes units that may be spent within a second, and gives some of them back.
func testPrepaid(h harness) {
	h.forEachRule(100, 60*time.Second, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		if r.Algorithm() == "buckets" {
			h.alignClock(r)
		}
		op := takePrepaidOp(r, key, 40, time.Second)
		res := h.do(op)[0]
		requireEqual(h, "Allowed", res.Allowed, true)
		requireEqual(h, "good for", op.ValidFor(res), time.Second-time.Microsecond)
		switch r.Algorithm() {
		case "log":
			requireEqual(h, "Remaining", res.Remaining, 60)
			requireEqual(h, "until they leave the window", res.ResetAfter, 61*time.Second)
		case "gcra": // a GCRA also charges the 1.7 units that come back in a second
			requireEqual(h, "Remaining", res.Remaining, 58)
			requireEqual(h, "until it is empty", res.ResetAfter, 25*time.Second)
		default:
			requireEqual(h, "Remaining", res.Remaining, 60)
		}
		rest := res.Receipt
		rest.N = 30
		requireEqual(h, "give 30 back", h.refund(r, key, rest), true)
		rest.N = 11
		requireEqual(h, "give 11 of 10 back", h.refund(r, key, rest), false)
		if canCount(r) {
			requireEqual(h, "count", h.count(r, key, 0), 10)
			h.clock.Advance(2 * time.Second)
			rest.N = 10
			requireEqual(h, "give 10 back, late", h.refund(r, key, rest), true)
			requireEqual(h, "count", h.count(r, key, 0), 0)
		}
	})
}

// testPrepaidKeepsOlderUnits checks that units in a log count for their whole Per although prepaid units are charged later.
func testPrepaidKeepsOlderUnits(h harness) {
	h.forEachRule(10, 12*time.Second, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		if r.Algorithm() != "log" {
			return
		}
		h.doOne(ratelimit.Take, r, key, 5)
		h.clock.Advance(10 * time.Second)
		h.do(takePrepaidOp(r, key, 1, 3*time.Second))
		h.clock.Advance(time.Second)
		h.doOne(ratelimit.Take, r, key, 4)
		h.clock.Advance(time.Second - time.Microsecond)
		res := h.doOne(ratelimit.Take, r, key, 1)
		requireEqual(h, "before the five leave: Allowed", res.Allowed, false)
		requireEqual(h, "before the five leave: RetryAfter", res.RetryAfter, time.Microsecond)
		requireEqual(h, "before the five leave: ResetAfter", res.ResetAfter, 13*time.Second+time.Microsecond)
		h.clock.Advance(time.Microsecond)
		requireEqual(h, "after: Remaining", h.doOne(ratelimit.Peek, r, key, 1).Remaining, 5)
		h.clock.Advance(13*time.Second - time.Microsecond)
		requireEqual(h, "before the others leave: Remaining", h.doOne(ratelimit.Peek, r, key, 1).Remaining, 5)
		h.clock.Advance(time.Microsecond)
		requireEqual(h, "after: Remaining", h.doOne(ratelimit.Peek, r, key, 1).Remaining, 10)
	})
}

func testPrepaidInvalid(h harness) {
	h.forEachRule(10, 2*time.Hour, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		good := takePrepaidOp(r, key, 1, time.Minute)
		peek, long, back := good, good, good
		peek.Kind, long.Prepaid, back.Prepaid = ratelimit.Peek, time.Hour+time.Microsecond, -time.Second
		for name, ops := range map[string][]ratelimit.Op{
			"a peek": {peek}, "too long": {long}, "negative": {back},
			"in a group": {good, takeOp(r, 1)}, "in a group, later": {takeOp(r, 1), good},
		} {
			for i := range ops {
				ops[i].Key = key
			}
			if _, err := do(h.Context(), h.store, ops); !errors.Is(err, ratelimit.ErrOp) {
				h.Errorf("%v: %s: error %v, want ErrOp", r, name, err)
			}
		}
		requireEqual(h, "Remaining", h.doOne(ratelimit.Peek, r, key, 1).Remaining, 10)
		if r.Algorithm() == "gcra" { // 5 of 10 units come back in an hour
			_, err := do(h.Context(), h.store, []ratelimit.Op{takePrepaidOp(r, key, 6, time.Hour)})
			requireEqual(h, "6 and 5 of burst 10: ErrTooLarge", errors.Is(err, ratelimit.ErrTooLarge), true)
			requireEqual(h, "5 and 5 of burst 10: Remaining", h.do(takePrepaidOp(r, key, 5, time.Hour))[0].Remaining, 0)
		}
	})
}
