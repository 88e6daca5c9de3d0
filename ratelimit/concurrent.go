package ratelimit

import (
	"context"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// Concurrent allows limit units at a time: a request takes units when it begins, and gives them back when it ends. Use it
// in a [Policy], which releases the units when the request is finished, even if the handler panics or the client leaves.
// With a [Limiter], call Take, and Refund with the same result.
//
// Units have a limited life, a minute or that of [Rule.WithLife], after which they are no longer counted. So if a process
// dies, a release fails or the answer to a take is lost, the units come back when their life ends. More than limit units are
// in use only if some of them are in use for longer than their life. The life should be longer than the longest request.
//
// A counter is a [SlidingLog] over the life, so a release costs more if many units were taken later. [Policy.Refund] does not
// release units. RetryAfter and ResetAfter are at most a second, because units may come back at any moment. [Limiter.Count]
// returns the number of units in use.
func Concurrent(limit int64) Rule {
	d := time.Minute.Microseconds()
	return newRule(layout.Layout{Algorithm: layout.Log, Concurrent: true, Limit: limit, Per: d, Span: d, Expiry: d},
		limitError("Concurrent.Limit", limit, 1))
}

// WithLife returns a [Concurrent] with another life, in whole microseconds. The counter is a different one.
func (r Rule) WithLife(d time.Duration) Rule {
	l := *r.Layout()
	if !l.Concurrent {
		return changed(l, "Rule.Life is for a Concurrent only")
	}
	l.Per, l.Span, l.Expiry = d.Microseconds(), d.Microseconds(), d.Microseconds()
	l.SetID()
	return changed(l, durationError("Rule.Life", d))
}

// concurrent reports whether [Concurrent] has made the rule.
func (r Rule) concurrent() bool { return r.Layout().Concurrent }

// removeHeld returns ops that release the units of rules of [Concurrent]. It removes their receipts from the result, so that
// Refund does not release them. There are no units if the take was denied, or if a layer has allowed it without a charge.
func (c *charge) removeHeld() (releases []Op) {
	for i, r := range c.rules {
		if one := c.res.ofRule(i); r.concurrent() && one.Receipt.N > 0 {
			releases = append(releases, Op{Rule: r, Key: c.subject, Kind: Refund, Receipt: one.Receipt})
			one.Receipt = Receipt{}
		}
	}
	return releases
}

// release runs the result of removeHeld when the request is over. It releases nothing if the life of the units has ended.
func (p *boundPolicy) release(ctx context.Context, releases []Op) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTime)
	defer cancel()
	_, err := p.store.Do(limited, releases)
	return p.wrapStoreError(limited, err)
}
