// Package storetest has a test suite for implementations of ratelimit.Store. The tests of each store call [Run]. The suite
// controls the clock that the store reads. It does not check bounds, eviction and failures, which each store tests itself.
package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// Clock is the clock of a store under test.
type Clock interface {
	Now() time.Time
	// Advance moves the clock by d, which may be negative.
	Advance(d time.Duration)
}

// ManualClock is a [Clock] that only Advance moves. It is safe for concurrent use.
type ManualClock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows now.
func NewClock(now time.Time) *ManualClock { return &ManualClock{now: now} }

// Now returns the time that the clock shows.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Open returns a new, empty store and the clock that the store reads.
type Open func(t *testing.T) (ratelimit.Store, Clock)

// Supports reports whether a store supports a rule.
type Supports func(ratelimit.Rule) bool

// Everything is a [Supports] function for stores that support every rule.
func Everything(ratelimit.Rule) bool { return true }

// Run runs the suite as subtests of t, for all rules that the store supports. Each subtest opens a new store. Single ops are
// run with DoOne, and some also with Do.
func Run(t *testing.T, open Open, supports Supports) {
	for _, c := range []struct {
		name string
		test func(h harness)
	}{
		{"count by buckets", testCount},
		{"idle for a lap", testIdleForALap},
		{"count over the span", testCountOverSpan},
		{"group", testGroup},
		{"group on one counter", testGroupOneCounter},
		{"new group", testNewGroup},
		{"reset in a list", testResetInList},
		{"invalid ops", testInvalid},
		{"odd keys", testOddKeys},
		{"ended context", testEndedContext},
		{"concurrent callers", testConcurrent},
		{"the limit is exact", testLimitIsExact},
		{"every rate", testRates},
		{"refund by every rule", testRefunds},
		{"refund of other counters", testRefundsOfOthers},
		{"overflow by every rule", testOverflows},
		{"large denials", testLargeDenials},
		{"add nothing", testAddNothing},
		{"adds beyond the burst", testAddsBeyondTheBurst},
		{"boundaries", testGCRAArithmeticLimits},
		{"count is not supported", testNoCount},
		{"block", testBlock},
		{"block ends", testBlockResets},
		{"two clocks", testTwoClocks},
		{"window slides", testWindowSlides},
		{"throttle", testThrottle},
		{"requests in progress", testConcurrentRule},
		{"calendar", testCalendar},
		{"counters of the calendar", testCalendarCounters},
		{"prepaid", testPrepaid},
		{"prepaid keeps older units", testPrepaidKeepsOlderUnits},
		{"prepaid, invalid", testPrepaidInvalid},
		{"random", testRandom},
		{"random, clock goes back", testRandomClockBack},
		{"random, one rule", testRandomOneRule},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, clock := open(t)
			c.test(harness{t, store, clock, supports})
		})
	}
}

// do runs ops with Do, or with DoOne if there is only one op.
func do(ctx context.Context, store ratelimit.Store, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if len(ops) != 1 {
		return store.Do(ctx, ops)
	}
	res, err := store.DoOne(ctx, ops[0])
	return []ratelimit.Result{res}, err
}

// harness runs ops on one store, and fails the test if the store returns an error.
type harness struct {
	*testing.T
	store    ratelimit.Store
	clock    Clock
	supports Supports
}

func (h harness) do(ops ...ratelimit.Op) []ratelimit.Result {
	h.Helper()
	results, err := do(h.Context(), h.store, ops)
	if err != nil {
		h.Fatalf("Do(%v): %v", ops, err)
	}
	if len(results) != len(ops) {
		h.Fatalf("Do(%v): %d results", ops, len(results))
	}
	return results
}

func (h harness) doOne(kind ratelimit.Kind, r ratelimit.Rule, key string, n int64) ratelimit.Result {
	h.Helper()
	return h.do(ratelimit.Op{Rule: r, Key: key, N: n, Kind: kind})[0]
}

// requireDenied requires that a take of n units is denied, and returns the result of a peek. The two results must be equal,
// unless package layer's DenyCache has answered the take.
func (h harness) requireDenied(r ratelimit.Rule, key string, n int64) ratelimit.Result {
	h.Helper()
	res, peeked := h.doOne(ratelimit.Take, r, key, n), h.doOne(ratelimit.Peek, r, key, n)
	requireEqual(h, "Allowed", res.Allowed, false)
	if res.Source == ratelimit.FromStore {
		requireEqual(h, "a denied take, and a peek", res, peeked)
	}
	return peeked
}

func (h harness) count(r ratelimit.Rule, key string, d time.Duration) int64 {
	h.Helper()
	return h.do(ratelimit.Op{Rule: r, Key: key, Kind: ratelimit.Count, Interval: d})[0].Count
}

// alignClock moves the clock to the beginning of the next bucket, unless a bucket begins now.
func (h harness) alignClock(r ratelimit.Rule) {
	now := time.Duration(h.clock.Now().UnixMicro()) * time.Microsecond
	if begun := time.Duration(bucketNumber(r, now)) * r.Interval(); begun < now {
		h.clock.Advance(begun + r.Interval() - now)
	}
}

func requireEqual[T comparable](h harness, what string, got, want T) {
	h.Helper()
	if got != want {
		h.Fatalf("%s is %v, want %v", what, got, want)
	}
}
