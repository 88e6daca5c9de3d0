package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// largeRules returns a rule with the largest possible limit for each algorithm.
func largeRules(block ratelimit.Block) []ratelimit.Rule {
	const most = 1 << 53
	return []ratelimit.Rule{
		ratelimit.Buckets(ratelimit.BucketOptions{Limit: most, Span: time.Minute}).WithBlock(block),
		ratelimit.SlidingLog(most, time.Minute).WithBlock(block),
		ratelimit.SlidingLog(most, time.Minute).WithStream().WithBlock(block),
		ratelimit.FixedWindow(most, time.Minute).WithBlock(block),
		ratelimit.GCRA(100_000, 24*time.Hour).WithBlock(block),
	}
}

// testLargeDenials takes so many units that their sum with the used units cannot be counted. Such a take must be denied and
// must not return an error, whether it is alone or in a group.
func testLargeDenials(h harness) {
	for _, block := range []ratelimit.Block{{}, {After: 2, For: 72 * time.Hour}} {
		for _, r := range largeRules(block) {
			if !h.supports(r) {
				continue
			}
			limit := r.Limit()
			for _, c := range []struct{ used, n int64 }{
				{limit / 10 * 6, limit / 2}, {limit - 1, 2}, {limit, 1}, {limit, limit}, {1, limit},
			} {
				key := fmt.Sprint(r, c, block.After)
				h.doOne(ratelimit.Take, r, key, c.used)
				h.requireLargeDenied(r, key, c.used, c.n)
			}
		}
	}
}

// requireLargeDenied requires that takes of n units are denied: alone, in groups, in lists and by a Limiter.
func (h harness) requireLargeDenied(r ratelimit.Rule, key string, used, n int64) {
	h.Helper()
	op := ratelimit.Op{Rule: r, Key: key, N: n, Kind: ratelimit.Take}
	peek, apart, other, elsewhere := op, op, op, op
	peek.Kind, apart.NewGroup = ratelimit.Peek, true
	other.Rule, other.N = ratelimit.Buckets(ratelimit.BucketOptions{Limit: 9}).WithName("other"), 1
	elsewhere.Rule, elsewhere.N, elsewhere.Key = other.Rule, 1, key+"?"

	told := h.do(peek)[0]
	requireEqual(h, key+": Allowed", told.Allowed, false)
	requireEqual(h, key+": Remaining", told.Remaining, r.Limit()-used)
	for _, ops := range [][]ratelimit.Op{{op}, {other, op}, {op, other}, {peek, op}, {peek, other, op, peek}, {elsewhere, apart, apart}} {
		for i, res := range h.do(ops...) {
			if ops[i].Rule != r {
				continue
			}
			requireEqual(h, key+": Allowed", res.Allowed, false)
			requireEqual(h, key+": Violated", res.Violated, true)
			if r.Block().After == 0 && res.Source == ratelimit.FromStore {
				requireEqual(h, key+": a denied take, and a peek", res, told)
			}
		}
	}
	wide := ratelimit.Buckets(ratelimit.BucketOptions{Limit: 1 << 53}).WithName("wide")
	both, err := ratelimit.NewLimiter(h.store, wide, r)
	if err != nil {
		h.Fatal(err)
	}
	res, err := both.Take(h.Context(), key, n)
	if err != nil {
		h.Fatalf("%s: two rules: %v", key, err)
	}
	requireEqual(h, key+": allowed by two rules", res.Allowed, false)
	requireEqual(h, key+": charged by two rules", h.count(wide, key, 0), 0)
	requireEqual(h, key+": charged by a denied group", h.doOne(ratelimit.Peek, other.Rule, key, 1).Remaining, 9)
	wait := h.do(peek)[0].RetryAfter
	h.clock.Advance(wait - time.Microsecond)
	requireEqual(h, key+": a microsecond early", h.do(peek)[0].Allowed, false)
	h.clock.Advance(time.Microsecond)
	requireEqual(h, key+": in time", h.do(op)[0].Allowed, true)
}

// testAddsBeyondTheBurst adds more units to a GCRA than can be taken, up to the largest count. It checks that the counter
// recovers at the right rate.
func testAddsBeyondTheBurst(h harness) {
	for i, r := range []ratelimit.Rule{
		ratelimit.GCRA(100_000, 24*time.Hour),
		ratelimit.GCRA(10, 6*time.Second).WithBurst(25),
		ratelimit.GCRA(600_000, time.Second).WithBurst(7),
		ratelimit.GCRA(12_345_677, time.Hour).WithBurst(1000),
		ratelimit.GCRA(1<<53-3, 30*24*time.Hour).WithBurst(3),
		ratelimit.GCRA(1, 24*time.Hour),
	} {
		if !h.supports(r) {
			continue
		}
		most := min(1<<53, (1<<53)/r.Per().Microseconds()*1000)
		for _, n := range []int64{r.Burst()/2*3 + 1, most / 3, most - r.Burst() - 1} {
			key := fmt.Sprint(i, n)
			h.doOne(ratelimit.Take, r, key, r.Burst())
			res := h.doOne(ratelimit.Add, r, key, n)
			requireEqual(h, key+": Allowed", res.Allowed, true)
			h.requireLevel(r, key, n+r.Burst(), 0)
			requireEqual(h, key+": refund", h.refund(r, key, res.Receipt), true)
			h.requireLevel(r, key, r.Burst(), 0)
			h.doOne(ratelimit.Add, r, key, n)
			var passed time.Duration
			for _, d := range []time.Duration{time.Microsecond, 7_654_321 * time.Microsecond, r.Per(), 27*r.Per() + 3*time.Microsecond} {
				h.clock.Advance(d)
				passed += d
				h.requireLevel(r, key, n+r.Burst(), passed)
			}
			h.doOne(ratelimit.Reset, r, key, 0)
		}
		_, err := do(h.Context(), h.store, []ratelimit.Op{{Rule: r, Key: "k", N: most + 1, Kind: ratelimit.Add}})
		requireEqual(h, "more than can be counted: ErrOverflow", errors.Is(err, ratelimit.ErrOverflow), true)
		requireEqual(h, "and nothing is charged", h.doOne(ratelimit.Peek, r, "k", 1).Remaining, r.Burst())
	}
}

// requireLevel checks the result of a peek after the units were charged to a GCRA and the time passed has elapsed. The level
// may differ from the exact level by 1,024, because a float64 rounds the largest levels.
func (h harness) requireLevel(r ratelimit.Rule, key string, units int64, passed time.Duration) {
	h.Helper()
	per, limit := r.Per().Microseconds(), big.NewInt(r.Limit())
	level := new(big.Int).Sub(bigProduct(units, per), bigProduct(passed.Microseconds(), r.Limit()))
	full := bigProduct(r.Burst(), per)
	remaining := func(rounded int64) int64 {
		free := new(big.Int).Sub(full, addClamped(level, rounded))
		return addClamped(free.Div(free, big.NewInt(per)), 0).Int64()
	}
	until := func(level *big.Int, rounded int64) time.Duration { // rounds up to microseconds
		us := addClamped(level, rounded)
		us.Add(us, limit).Sub(us, big.NewInt(1)).Div(us, limit)
		if !us.IsInt64() || us.Int64() > ratelimit.MaxDuration.Microseconds() {
			return ratelimit.MaxDuration
		}
		return time.Duration(us.Int64()) * time.Microsecond
	}
	const most = 1024
	got := h.doOne(ratelimit.Peek, r, key, 1)
	requireBetween(h, key+": Remaining", got.Remaining, remaining(most), remaining(-most))
	retry := new(big.Int).Sub(new(big.Int).Add(level, big.NewInt(per)), full)
	requireBetween(h, key+": RetryAfter", got.RetryAfter, until(retry, -most), until(retry, most))
	requireBetween(h, key+": ResetAfter", got.ResetAfter, until(level, -most), until(level, most))
}

// addClamped returns the sum of n and more, or 0 if the sum is negative.
func addClamped(n *big.Int, more int64) *big.Int {
	sum := new(big.Int).Add(n, big.NewInt(more))
	if sum.Sign() < 0 {
		sum.SetInt64(0)
	}
	return sum
}

func requireBetween[T cmp.Ordered](h harness, what string, got, least, most T) {
	h.Helper()
	if got < least || got > most {
		h.Fatalf("%s is %v, want %v to %v", what, got, least, most)
	}
}
