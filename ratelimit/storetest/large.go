package storetest

import (
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// largeRules have the largest limits that there are.
func largeRules(block ratelimit.Block) []ratelimit.Rule {
	const most = 1 << 53
	return []ratelimit.Rule{
		ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Limit: most, Span: time.Minute, Block: block})),
		ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: most, Per: time.Minute, Block: block})),
		ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: most, Per: time.Minute, Encoding: ratelimit.Stream, Block: block})),
		ratelimit.Must(ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: most, Per: time.Minute, Block: block})),
		ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 100_000, Per: 24 * time.Hour, Block: block})),
	}
}

// testLargeDenials denies takes of more units than could be counted, together with those that
// are used: each is a denial, alone and in groups, and not an error.
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
				key := fmt.Sprint(r, r.Encoding(), c, block.After)
				h.one(ratelimit.Take, r, key, c.used)
				h.deniesLarge(r, key, c.used, c.n)
			}
		}
	}
}

// deniesLarge takes n in all the ways that there are.
func (h harness) deniesLarge(r ratelimit.Rule, key string, used, n int64) {
	h.Helper()
	op := ratelimit.Op{Rule: r, Key: key, N: n, Kind: ratelimit.Take}
	peek, apart, other, elsewhere := op, op, op, op
	peek.Kind, apart.Apart = ratelimit.Peek, true
	other.Rule, other.N = rule(h, ratelimit.BucketOptions{Name: "other", Limit: 9}), 1
	elsewhere.Rule, elsewhere.N, elsewhere.Key = other.Rule, 1, key+"?"

	told := h.do(peek)[0]
	same(h, key+": Allowed", told.Allowed, false)
	same(h, key+": Remaining", told.Remaining, r.Limit()-used)
	for _, ops := range [][]ratelimit.Op{{op}, {other, op}, {op, other}, {peek, op}, {peek, other, peek, op}, {elsewhere, apart, apart}} {
		for i, res := range h.do(ops...) {
			if ops[i].Rule != r {
				continue
			}
			same(h, key+": Allowed", res.Allowed, false)
			same(h, key+": Violated", res.Violated, true)
			if r.Block().After == 0 && res.Source == ratelimit.FromStore {
				same(h, key+": a denied take, and a peek", res, told)
			}
		}
	}
	wide := rule(h, ratelimit.BucketOptions{Name: "wide", Limit: 1 << 53})
	union, err := ratelimit.NewUnion(h.store, wide, r)
	if err != nil {
		h.Fatal(err)
	}
	verdict, err := union.Take(h.Context(), key, n)
	if err != nil {
		h.Fatalf("%s: a union: %v", key, err)
	}
	same(h, key+": allowed by a union", verdict.Allowed, false)
	same(h, key+": charged by a union", h.count(wide, key, 0), 0)
	same(h, key+": charged by a denied group", h.one(ratelimit.Peek, other.Rule, key, 1).Remaining, 9)
	wait := h.do(peek)[0].RetryAfter
	h.clock.Advance(wait - time.Microsecond)
	same(h, key+": a microsecond early", h.do(peek)[0].Allowed, false)
	h.clock.Advance(time.Microsecond)
	same(h, key+": in time", h.do(op)[0].Allowed, true)
}

// testLargeAddInDeniedGroup adds as much as can be counted to as much, in a group that is denied:
// the time until it would pass is longer than a duration can be.
func testLargeAddInDeniedGroup(h harness) {
	for _, r := range append(largeRules(ratelimit.Block{}), ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 1, Per: time.Second}))) {
		if !h.supports(r) {
			continue
		}
		n, key, full := int64(1<<53), r.String()+r.Encoding().String(), rule(h, ratelimit.BucketOptions{Name: "full", Limit: 1})
		if r.Algorithm() == "gcra" {
			n /= r.Per().Microseconds()
		}
		add := ratelimit.Op{Rule: r, Key: key, N: n, Kind: ratelimit.Add}
		h.do(add)
		h.one(ratelimit.Take, full, key, 1)
		res := h.do(add, ratelimit.Op{Rule: full, Key: key, N: 1, Kind: ratelimit.Take})[0]
		same(h, key+": Allowed", res.Allowed, false)
		if res.RetryAfter < 0 || res.ResetAfter <= 0 {
			h.Errorf("%s: RetryAfter is %v, ResetAfter %v", key, res.RetryAfter, res.ResetAfter)
		}
	}
}
