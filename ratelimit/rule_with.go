package ratelimit

import (
	"fmt"

	"github.com/lazyreq/lazyreq/internal/names"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// WithLimit returns the rule with another limit, at least 1, such as that of one caller's plan.
// The counter is the same. A GCRA's burst follows, unless it was chosen.
func (r Rule) WithLimit(limit int64) Rule {
	d := *r.description()
	d.layout.Limit = limit
	if !d.ownBurst {
		d.layout.Burst = limit
	}
	return d.rule(limitError("Rule.Limit", limit, 1))
}

// WithoutLimit returns the rule as one that only counts, for buckets and logs without a Block.
// The counter is the same.
func (r Rule) WithoutLimit() Rule {
	d := *r.description()
	d.layout.Limit, d.layout.Burst = 0, 0
	switch {
	case d.layout.Algorithm != layout.Buckets && d.layout.Algorithm != layout.Log:
		return d.rule("Rule.Limit is missing, and only buckets and logs count without one")
	case d.layout.BlockAfter > 0:
		return d.rule("Rule.Limit is missing, and a Block needs one")
	}
	return d.rule("")
}

// WithBurst returns a GCRA with another burst: how many units can be taken at once after a rest.
// In any time d, at most Burst + Limit × d/Per pass. (Burst + 1) × Per in microseconds is at
// most 2^53, which for a day is a burst of 104,248. The counter is the same.
func (r Rule) WithBurst(burst int64) Rule {
	d := *r.description()
	if d.layout.Algorithm == 0 && d.layout.Per > 0 { // only its burst was wrong
		d.layout.Algorithm, d.err = layout.GCRA, ""
		d.setID()
	}
	if d.layout.Algorithm != layout.GCRA {
		return d.rule("Rule.Burst is for a GCRA only")
	}
	d.layout.Burst, d.ownBurst = burst, true
	return d.rule("")
}

// WithBlock returns the rule with a Block; the zero Block is none. The counter is the same.
func (r Rule) WithBlock(b Block) Rule {
	d := *r.description()
	if b == (Block{}) {
		d.layout.BlockAfter, d.layout.BlockFor = 0, 0
		return d.rule("")
	}
	d.layout.BlockAfter, d.layout.BlockFor = int64(b.After), b.For.Microseconds()
	err := durationError("Rule.Block.For", b.For)
	switch {
	case b.After < 1 || b.After > maxAfter:
		err = fmt.Sprintf("Rule.Block.After is %d, want 1 to %d", b.After, maxAfter)
	case d.layout.Limit == 0:
		err = "Rule.Block is set, but there is no limit, so nothing is denied"
	}
	return d.rule(err)
}

// WithName returns the rule with a name in place of its Per: letters, digits, "-" and "_", at
// most 64 of them; "" means its Per again. Rules of different names have different counters.
func (r Rule) WithName(name string) Rule {
	d := *r.description()
	if name != "" && !names.Valid(name) {
		return d.rule(fmt.Sprintf("Rule.Name is %q, want %s", name, names.Rule))
	}
	if d.layout.Name, d.layout.Named = name, name != ""; name == "" {
		d.layout.Name = periodName(r.Per())
	}
	d.setID()
	return d.rule("")
}

// WithStream returns a sliding log that Redis keeps as a stream, which is smaller than the sorted
// set that it is otherwise, and is trimmed now and then. The answers are the same, the counters
// are different ones.
func (r Rule) WithStream() Rule {
	d := *r.description()
	if d.layout.Algorithm != layout.Log {
		return d.rule("Rule.Stream is for a SlidingLog only")
	}
	d.layout.Stream = true
	d.setID()
	return d.rule("")
}
