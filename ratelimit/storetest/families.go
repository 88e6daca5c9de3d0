package storetest

import (
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// families returns rules, those that share a counter together.
func families(supports Supports, back bool) [][]ratelimit.Rule {
	// What a store forgets when the clock goes back over an expiry is not promised.
	var expiry time.Duration
	if back {
		expiry = 1000 * time.Hour
	}
	s := time.Second
	block := ratelimit.Block{After: 2, For: 3 * s}
	var all [][]ratelimit.Rule
	for _, r := range []ratelimit.Rule{
		ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Limit: 6, Per: 4 * s, Interval: s, Span: 10 * s, Expiry: expiry})),
		ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Limit: 9, Interval: s, Span: 10 * s, Expiry: expiry})),
		ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Name: "odd", Limit: 20, Per: 2500 * time.Millisecond, Interval: 700 * time.Millisecond, Span: 2800 * time.Millisecond, Expiry: expiry})),
		ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Name: "blocks", Limit: 5, Per: 3 * s, Interval: s, Span: 3 * s, Expiry: expiry, Block: block})),
		ratelimit.Must(ratelimit.Buckets(ratelimit.BucketOptions{Name: "counts", Per: 3 * s, Interval: s, Span: 5 * s, Expiry: expiry})),
		ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: 6, Per: 4 * s})),
		ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Limit: 9, Per: 2500 * time.Millisecond, Encoding: ratelimit.Stream})),
		ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Name: "blocks", Limit: 5, Per: 3 * s, Block: block})),
		ratelimit.Must(ratelimit.SlidingLog(ratelimit.LogOptions{Name: "counts", Per: 5 * s})),
		ratelimit.Must(ratelimit.FixedWindow(ratelimit.WindowOptions{Limit: 6, Per: 4 * s})),
		ratelimit.Must(ratelimit.FixedWindow(ratelimit.WindowOptions{Name: "blocks", Limit: 5, Per: 3 * s, Block: ratelimit.Block{After: 1, For: 5 * s}})),
		ratelimit.Must(ratelimit.Throttle(s)),
		ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Limit: 6, Per: 4 * s})),
		ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Name: "burst", Limit: 7, Per: 2500 * time.Millisecond, Burst: 12})),
		ratelimit.Must(ratelimit.GCRA(ratelimit.GCRAOptions{Name: "blocks", Limit: 5, Per: 3 * s, Block: block})),
	} {
		if !supports(r) {
			continue
		}
		family := []ratelimit.Rule{r}
		for _, limit := range []int64{3, 11} {
			if r.Limit() > 1 {
				family = append(family, ratelimit.Must(r.WithLimit(limit)))
			}
		}
		all = append(all, family)
	}
	return all
}
