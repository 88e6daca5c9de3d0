package storetest

import (
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// The scenarios of BEHAVIOUR, for every rule that they fit.

// testIdleForALapEveryRule is scenario 4 for every rule that can count: what is idle for a lap begins anew.
func testIdleForALapEveryRule(h harness) {
	h.forEachRule(100, time.Minute, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		if !canCount(r) {
			return
		}
		for range 5 {
			h.doOne(ratelimit.Add, r, key, 1)
		}
		requireEqual(h, "count", h.count(r, key, 0), 5)
		for range 4 {
			h.clock.Advance(time.Minute + 10*time.Second)
			requireEqual(h, "count after a lap", h.count(r, key, 0), 0)
			requireEqual(h, "AddCount after a lap", h.doOne(ratelimit.Add, r, key, 1).Count, 1)
		}
	})
}

// testTwoClocks is scenario 6: one client's clock is 6 s behind.
func testTwoClocks(h harness) {
	h.forEachRule(100, 24*time.Second, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		for range 5 {
			h.doOne(ratelimit.Add, r, key, 1)
		}
		h.clock.Advance(-6 * time.Second)
		h.doOne(ratelimit.Add, r, key, 1)
		h.clock.Advance(6 * time.Second)
		requireEqual(h, "Remaining", h.doOne(ratelimit.Peek, r, key, 1).Remaining, 94)
		if canCount(r) {
			requireEqual(h, "count", h.count(r, key, 0), 6)
		}
	})
}

// testWindowSlides is scenario 7: what a window holds as it slides.
func testWindowSlides(h harness) {
	for _, r := range h.rulesFor(0, 5*time.Second, ratelimit.Block{}) {
		if r.Algorithm() != "log" {
			continue
		}
		key := r.String()
		h.doOne(ratelimit.Add, r, key, 1)
		h.clock.Advance(3 * time.Second)
		h.doOne(ratelimit.Add, r, key, 2)
		for _, c := range []struct {
			after time.Duration
			want  int64
		}{{time.Second, 3}, {3 * time.Second, 2}, {2 * time.Second, 0}} {
			h.clock.Advance(c.after)
			requireEqual(h, "count", h.count(r, key, 0), c.want)
		}
		// Until the last microsecond, also while others are charged.
		h.doOne(ratelimit.Add, r, key, 1)
		h.clock.Advance(r.Per() - time.Microsecond)
		requireEqual(h, "in the last microsecond", h.doOne(ratelimit.Add, r, key, 1).Count, 2)
		h.clock.Advance(time.Microsecond)
		requireEqual(h, "after it", h.doOne(ratelimit.Add, r, key, 1).Count, 2)
	}
}

// testEleventhTakeOfTen is scenario 8.
func testEleventhTakeOfTen(h harness) {
	h.forEachRule(10, 4800*time.Millisecond, ratelimit.Block{}, func(h harness, r ratelimit.Rule, key string) {
		passed := 0
		for range 11 {
			if h.doOne(ratelimit.Take, r, key, 1).Allowed {
				passed++
			}
		}
		requireEqual(h, "passed of eleven", passed, 10)
		h.doOne(ratelimit.Reset, r, key, 0)
		h.doOne(ratelimit.Take, r, key, 9)
		requireEqual(h, "5 at 9 used", h.doOne(ratelimit.Take, r, key, 5).Allowed, false)
		requireEqual(h, "Remaining", h.doOne(ratelimit.Peek, r, key, 1).Remaining, 1)
	})
}

// testThrottle is scenario 11: calls at 0, 700 and 1400 ms.
func testThrottle(h harness) {
	rules := []ratelimit.Rule{ratelimit.Throttle(time.Second)}
	for _, r := range h.rulesFor(1, time.Second, ratelimit.Block{}) {
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
			requireEqual(h, "throttled", h.doOne(ratelimit.Take, r, key, 1).Allowed, want)
		}
	}
}
