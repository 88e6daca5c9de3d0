package storetest

import (
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// The scenarios of BEHAVIOUR, for every rule that they fit.

// testIdle is scenario 4 for rules without buckets: what is idle for a lap begins anew.
func testIdle(h harness) {
	h.each(100, time.Minute, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		if !counted(r) {
			return
		}
		for range 5 {
			h.one(ratelimit.Add, r, key, 1)
		}
		same(h, "count", h.count(r, key, 0), 5)
		for range 4 {
			h.clock.Advance(time.Minute + 10*time.Second)
			same(h, "count after a lap", h.count(r, key, 0), 0)
			same(h, "AddCount after a lap", h.one(ratelimit.Add, r, key, 1).Count, 1)
		}
	})
}

// testTwoClocks is scenario 6: one client's clock is 6 s behind.
func testTwoClocks(h harness) {
	h.each(100, 24*time.Second, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		for range 5 {
			h.one(ratelimit.Add, r, key, 1)
		}
		h.clock.Advance(-6 * time.Second)
		h.one(ratelimit.Add, r, key, 1)
		h.clock.Advance(6 * time.Second)
		same(h, "Remaining", h.one(ratelimit.Peek, r, key, 1).Remaining, 94)
		if counted(r) {
			same(h, "count", h.count(r, key, 0), 6)
		}
	})
}

// testSlides is scenario 7: what a window holds as it slides.
func testSlides(h harness) {
	for _, r := range h.rulesOf(0, 5*time.Second, ratelimit.Block{}) {
		if r.Algorithm() != "log" {
			continue
		}
		key := r.String()
		h.one(ratelimit.Add, r, key, 1)
		h.clock.Advance(3 * time.Second)
		h.one(ratelimit.Add, r, key, 2)
		for _, c := range []struct {
			after time.Duration
			want  int64
		}{{time.Second, 3}, {3 * time.Second, 2}, {2 * time.Second, 0}} {
			h.clock.Advance(c.after)
			same(h, "count", h.count(r, key, 0), c.want)
		}
		// Until the last microsecond, also while others are charged.
		h.one(ratelimit.Add, r, key, 1)
		h.clock.Advance(r.Per() - time.Microsecond)
		same(h, "in the last microsecond", h.one(ratelimit.Add, r, key, 1).Count, 2)
		h.clock.Advance(time.Microsecond)
		same(h, "after it", h.one(ratelimit.Add, r, key, 1).Count, 2)
	}
}

// testElevenOfTen is scenario 8.
func testElevenOfTen(h harness) {
	h.each(10, 4800*time.Millisecond, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		passed := 0
		for range 11 {
			if h.one(ratelimit.Take, r, key, 1).Allowed {
				passed++
			}
		}
		same(h, "passed of eleven", passed, 10)
		h.one(ratelimit.Reset, r, key, 0)
		h.one(ratelimit.Take, r, key, 9)
		same(h, "5 at 9 used", h.one(ratelimit.Take, r, key, 5).Allowed, false)
		same(h, "Remaining", h.one(ratelimit.Peek, r, key, 1).Remaining, 1)
	})
}

// testThrottle is scenario 11: calls at 0, 700 and 1400 ms.
func testThrottle(h harness) {
	rules := []ratelimit.Rule{ratelimit.Throttle(time.Second)}
	for _, r := range h.rulesOf(1, time.Second, ratelimit.Block{}) {
		if r.Algorithm() != "buckets" { // which deny for a bucket longer
			rules = append(rules, r)
		}
	}
	for i, r := range rules {
		if !h.supports(r) {
			continue
		}
		key := string(rune('a' + i))
		for at, want := range []bool{true, false, true} {
			if at > 0 {
				h.clock.Advance(700 * time.Millisecond)
			}
			same(h, "throttled", h.one(ratelimit.Take, r, key, 1).Allowed, want)
		}
	}
}
