package ratelimit

import (
	"time"

	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// MaxPrepaid is the longest Prepaid of an op.
const MaxPrepaid = time.Hour

// ValidFor returns for how long the units of op, a take that res has allowed, may be spent
// without breaking the rule, counted from any moment before op was sent. It is what keeps
// the promise of Prepaid, by algorithm:
//
// A log has the units as if they were charged when Prepaid is over, so they count for longer
// than those that are spent at once, never for less. A GCRA holds as much more of its
// level as falls in Prepaid: an op with too little room for that is [ErrTooLarge]. Buckets
// and windows know no finer time than a bucket or a window: the units are charged to the
// present one, and good only until its end, which may be sooner than Prepaid.
//
// Without Prepaid it is 0: the units are spent when they are taken. What is not spent can be
// given back, once, by a Refund of the receipt with N lowered to the rest; of a GCRA only
// if nothing else was charged.
//
// Both clocks are trusted to run alike; a caller whose clock is another machine's should
// stop a little earlier.
func (op Op) ValidFor(res Result) time.Duration {
	if op.Prepaid <= 0 || !res.Allowed {
		return 0
	}
	good := op.Prepaid
	switch r := &op.Rule; r.Layout().Algorithm {
	case layout.Window:
		good = min(good, res.ResetAfter)
	case layout.Buckets: // the newest bucket was charged, so it is what leaves the window last
		good = min(good, res.ResetAfter-micros(int64(r.Layout().Window)*r.Layout().Interval))
	}
	return max(0, good-time.Microsecond) // the store's clock is in whole ones
}
