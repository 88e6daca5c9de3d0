package storetest

import (
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// ruleFamilies returns families of rules. The rules of a family share a counter. If back is true, the clock may go back.
func ruleFamilies(supports Supports, back bool) [][]ratelimit.Rule {
	// A long expiry keeps counters: a store may forget some of them if the clock goes back across their expiry.
	var expiry time.Duration
	if back {
		expiry = 1000 * time.Hour
	}
	s := time.Second
	block := ratelimit.Block{After: 2, For: 3 * s}
	var all [][]ratelimit.Rule
	for _, r := range []ratelimit.Rule{
		ratelimit.Buckets(ratelimit.BucketOptions{Limit: 6, Per: 4 * s, Interval: s, Span: 10 * s, Expiry: expiry}),
		ratelimit.Buckets(ratelimit.BucketOptions{Limit: 9, Interval: s, Span: 10 * s, Expiry: expiry}),
		ratelimit.Buckets(ratelimit.BucketOptions{Limit: 20, Per: 2500 * time.Millisecond, Interval: 700 * time.Millisecond, Span: 2800 * time.Millisecond, Expiry: expiry}).WithName("odd"),
		ratelimit.Buckets(ratelimit.BucketOptions{Limit: 5, Per: 3 * s, Interval: s, Span: 3 * s, Expiry: expiry}).WithName("blocks").WithBlock(block),
		ratelimit.Buckets(ratelimit.BucketOptions{Per: 3 * s, Interval: s, Span: 5 * s, Expiry: expiry}).WithName("counts"),
		ratelimit.SlidingLog(6, 4*s),
		ratelimit.SlidingLog(9, 2500*time.Millisecond).WithStream(),
		ratelimit.SlidingLog(5, 3*s).WithName("blocks").WithBlock(block),
		ratelimit.SlidingLog(1, 5*s).WithoutLimit().WithName("counts"),
		ratelimit.Concurrent(4).WithLife(3 * s),
		ratelimit.FixedWindow(6, 4*s),
		ratelimit.FixedWindow(5, 3*s).WithName("blocks").WithBlock(ratelimit.Block{After: 1, For: 5 * s}),
		ratelimit.Throttle(s),
		ratelimit.Calendar(6, ratelimit.Day, lordHowe),
		ratelimit.Calendar(5, ratelimit.Month, newYork).WithName("blocks").WithBlock(ratelimit.Block{After: 2, For: time.Hour}),
		ratelimit.GCRA(6, 4*s),
		ratelimit.GCRA(7, 2500*time.Millisecond).WithBurst(12).WithName("burst"),
		ratelimit.GCRA(5, 3*s).WithName("blocks").WithBlock(block),
	} {
		if !supports(r) {
			continue
		}
		family := []ratelimit.Rule{r}
		for _, limit := range []int64{3, 11} {
			if r.Limit() > 1 {
				family = append(family, r.WithLimit(limit))
			}
		}
		all = append(all, family)
	}
	return all
}
