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
	// 600 s exactly is a lap for 20 s; 600 s can still see the bucket.
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

func testOverflow(h harness) {
	const most = 1 << 53
	r := coarseRule(most, 5*time.Second)
	h.alignClock(r)
	h.doOne(ratelimit.Add, r, "k", most-1)
	h.doOne(ratelimit.Take, r, "k", 1)
	for _, kind := range []ratelimit.Kind{ratelimit.Add, ratelimit.Take} {
		h.clock.Advance(10 * time.Second)
		_, err := do(h.Context(), h.store, []ratelimit.Op{{Rule: r, Key: "k", N: 1, Kind: kind}})
		if !errors.Is(err, ratelimit.ErrOverflow) {
			h.Fatalf("%v beyond 2^53 within the span: error %v, want ErrOverflow", kind, err)
		}
	}
	requireEqual(h, "count(span)", h.count(r, "k", 600*time.Second), most)
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

// testTwoClocks has a client whose clock is 6 s behind.
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

// testWindowSlides counts the units in a window that slides.
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

// testThrottle takes at 0, 700 and 1400 ms.
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
