package ratelimit

import (
	"cmp"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// GCRAOptions describes a token bucket: Burst units, which come back evenly, Limit of
// them in each Per.
type GCRAOptions struct {
	// Name tells the rule from others of its policy and of its key. Letters, digits,
	// "-" and "_", at most 64 of them; it may be empty.
	Name string
	// Limit is how many units come back in a Per, 1 to 2^53.
	Limit int64
	// Per is the time in which Limit units come back.
	Per time.Duration
	// Burst is how many units can be taken at once after a rest. In any time d, at most
	// Burst + Limit × d/Per pass. (Burst + 1) × Per in microseconds is at most 2^53,
	// which for a day is a burst of 104,248. Zero means Limit.
	//
	// An Add charges more than Burst, too: up to a thousand times the largest Burst (2^53 /
	// Per × 1000 units, for a day 104 million), and at most 2^53, not counting what has come
	// back. Beyond that it charges nothing and is [ErrOverflow]. Above the largest Burst, a store
	// may round by 1,024/Limit microseconds.
	Burst int64
	// Block is what denied takes lead to. Zero means nothing.
	Block Block
}

// GCRA returns a rule that keeps an even rate, known as the generic cell rate algorithm or
// token bucket. It is exact for every rate. A key takes two numbers; its units cannot be
// counted (ErrNoCount), and a charge can be refunded only as long as nothing else was
// charged.
//
// Durations are in whole microseconds. An error names the field and its value.
func GCRA(o GCRAOptions) (Rule, error) {
	const of = "ratelimit: GCRAOptions."
	if err := cmp.Or(
		checkName(of+"Name", o.Name),
		checkLimit(of+"Limit", o.Limit, 1),
		checkDuration(of+"Per", o.Per),
		o.Block.check(of+"Block", o.Limit),
	); err != nil {
		return Rule{}, err
	}
	r := Rule{ownBurst: o.Burst != 0, name: o.Name, layout: layout.Layout{
		Algorithm: layout.GCRA, Limit: o.Limit, Burst: o.Burst, Per: o.Per.Microseconds(), BlockAfter: int64(o.Block.After), BlockFor: o.Block.For.Microseconds(),
	}}
	if o.Burst == 0 {
		r.layout.Burst = o.Limit
	}
	if err := checkBurst(of+"Burst", r.layout.Burst, r.layout.Per); err != nil {
		return Rule{}, err
	}
	r.layout.Expiry = ceilDiv(r.layout.Burst*r.layout.Per, r.layout.Limit)
	return r.identified(), nil
}
