package ratelimit

import (
	"cmp"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// WindowOptions describes a counter that begins anew after each period.
type WindowOptions struct {
	// Name tells the rule from others of its policy and of its key. Letters, digits,
	// "-" and "_", at most 64 of them; it may be empty.
	Name string
	// Limit is the largest number of units in a window, 1 to 2^53.
	Limit int64
	// Per is the length of a window.
	Per time.Duration
	// Block is what denied takes lead to. Zero means nothing.
	Block Block
}

// FixedWindow returns a rule that allows Limit units in a window, which begins with the
// first charge and ends a Per later, whatever comes in between: a denied take prolongs
// nothing. At the edge of two windows nearly twice the limit can pass within a short
// time; the other rules don't have that. A key takes two numbers.
//
// Its units are counted over the window, so the interval of a count is zero or Per.
// Durations are in whole microseconds. An error names the field and its value.
func FixedWindow(o WindowOptions) (Rule, error) {
	const of = "ratelimit: WindowOptions."
	if err := cmp.Or(
		checkName(of+"Name", o.Name),
		checkLimit(of+"Limit", o.Limit, 1),
		checkDuration(of+"Per", o.Per),
		o.Block.check(of+"Block", o.Limit),
	); err != nil {
		return Rule{}, err
	}
	per := o.Per.Microseconds()
	r := Rule{name: o.Name, layout: layout.Layout{
		Algorithm: layout.Window, Limit: o.Limit, Burst: o.Limit, Per: per, Span: per, Expiry: per, BlockAfter: int64(o.Block.After), BlockFor: o.Block.For.Microseconds(),
	}}
	return r.identified(), nil
}

// Throttle returns a rule that allows one unit, and then none for d: a [FixedWindow] of
// one unit. Calls that come too early are denied and change nothing.
func Throttle(d time.Duration) (Rule, error) {
	if err := checkDuration("ratelimit: Throttle", d); err != nil {
		return Rule{}, err
	}
	return FixedWindow(WindowOptions{Limit: 1, Per: d})
}
