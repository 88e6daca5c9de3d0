package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

func testCount(h harness) {
	r := ratelimit.Buckets(ratelimit.BucketOptions{})
	h.alignClock(r)
	requireEqual(h, "count of an unknown key", h.count(r, "k", 20*time.Second), 0)
	for range 5 {
		h.doOne(ratelimit.Add, r, "k", 1)
	}
	h.clock.Advance(19900 * time.Millisecond)
	requireEqual(h, "count(20s) at +19.9s", h.count(r, "k", 20*time.Second), 5)
	h.clock.Advance(5100 * time.Millisecond)
	requireEqual(h, "count(20s) at +25s", h.count(r, "k", 20*time.Second), 0)
	requireEqual(h, "count(600s)", h.count(r, "k", 600*time.Second), 5)
	requireEqual(h, "count(zero), which is over Per", h.count(r, "k", 0), 5)
	requireEqual(h, "count of another key", h.count(r, "other", 600*time.Second), 0)
}

func testIdleForALap(h harness) {
	r := ratelimit.Buckets(ratelimit.BucketOptions{})
	h.alignClock(r)
	for range 5 {
		h.doOne(ratelimit.Add, r, "k", 1)
	}
	h.clock.Advance(605 * time.Second)
	for range 4 {
		requireEqual(h, "count after a lap", h.count(r, "k", 20*time.Second), 0)
		requireEqual(h, "count(600s) after a lap", h.count(r, "k", 600*time.Second), 0)
		requireEqual(h, "AddCount", h.doOne(ratelimit.Add, r, "k", 1).Count, 1)
		h.clock.Advance(605 * time.Second)
	}
	// After exactly 600 s, a count over 600 s still includes the bucket, but a count over 20 s does not.
	h.doOne(ratelimit.Add, r, "k", 1)
	h.clock.Advance(600 * time.Second)
	requireEqual(h, "count(20s)", h.count(r, "k", 20*time.Second), 0)
	res := h.do(ratelimit.Op{Rule: r, Key: "k", N: 1, Kind: ratelimit.Add, Interval: 20 * time.Second})
	requireEqual(h, "AddCount(20s)", res[0].Count, 1)
}

func testCountOverSpan(h harness) {
	r := ratelimit.Buckets(ratelimit.BucketOptions{Interval: 10 * time.Second, Span: 30 * time.Second, Expiry: time.Minute})
	h.doOne(ratelimit.Add, r, "k", 1)
	requireEqual(h, "count(span)", h.count(r, "k", 30*time.Second), 1)
	_, err := do(h.Context(), h.store, []ratelimit.Op{{Rule: r, Key: "k", Kind: ratelimit.Count, Interval: 31 * time.Second}})
	if !errors.Is(err, ratelimit.ErrInterval) || !strings.Contains(err.Error(), "30s") {
		h.Fatalf("count over the span: error %v, want ErrInterval that names 30s", err)
	}
}

func testEndedContext(h harness) {
	r := ratelimit.Buckets(ratelimit.BucketOptions{})
	why := errors.New("gone")
	ctx, cancel := context.WithCancelCause(h.Context())
	cancel(why)
	if _, err := do(ctx, h.store, []ratelimit.Op{{Rule: r, Key: "k", N: 1, Kind: ratelimit.Add}}); !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
		h.Fatalf("error %v, want that of the context", err)
	}
	requireEqual(h, "count", h.count(r, "k", 0), 0)
}

func testConcurrent(h harness) {
	r := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 100})
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				results, err := do(h.Context(), h.store, []ratelimit.Op{{Rule: r, Key: "k", N: 1, Kind: ratelimit.Take}})
				if err != nil {
					h.Error(err)
					return
				}
				if results[0].Allowed {
					passed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	requireEqual(h, "320 takes of limit 100: passed", passed.Load(), 100)
}

// testTwoClocks checks that a charge counts although the clock has gone back by 6 s.
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

// testWindowSlides checks that each unit leaves the count of a sliding log exactly a Per after its charge.
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
		// A unit counts until the last microsecond of its Per, even if other units are charged at that time.
		h.doOne(ratelimit.Add, r, key, 1)
		h.clock.Advance(r.Per() - time.Microsecond)
		requireEqual(h, "in the last microsecond", h.doOne(ratelimit.Add, r, key, 1).Count, 2)
		h.clock.Advance(time.Microsecond)
		requireEqual(h, "after it", h.doOne(ratelimit.Add, r, key, 1).Count, 2)
	}
}

// testThrottle takes one unit per second at 0, 700 and 1400 ms. Only the take at 700 ms is denied.
func testThrottle(h harness) {
	rules := []ratelimit.Rule{ratelimit.Throttle(time.Second)}
	for _, r := range h.rulesFor(1, time.Second, ratelimit.Block{}) {
		if r.Algorithm() != "buckets" { // buckets may deny for longer than a second
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
