package ratelimit

import (
	"fmt"

	"github.com/lazyreq/lazyreq/internal/names"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// WithLimit returns the rule with another limit, at least 1, such as that of one caller's plan.
// The counter is the same. A GCRA's burst follows, unless it was chosen.
func (r Rule) WithLimit(limit int64) Rule {
	r.layout.Limit = limit
	if !r.ownBurst {
		r.layout.Burst = limit
	}
	return r.withError(limitError("Rule.Limit", limit, 1))
}

// WithoutLimit returns the rule as one that only counts, for buckets and logs without a Block.
// The counter is the same.
func (r Rule) WithoutLimit() Rule {
	r.layout.Limit, r.layout.Burst = 0, 0
	switch {
	case r.layout.Algorithm != layout.Buckets && r.layout.Algorithm != layout.Log:
		return r.withError("Rule.Limit is missing, and only buckets and logs count without one")
	case r.layout.BlockAfter > 0:
		return r.withError("Rule.Limit is missing, and a Block needs one")
	}
	return r
}

// WithBurst returns a GCRA with another burst: how many units can be taken at once after a rest.
// In any time d, at most Burst + Limit × d/Per pass. (Burst + 1) × Per in microseconds is at
// most 2^53, which for a day is a burst of 104,248. The counter is the same.
func (r Rule) WithBurst(burst int64) Rule {
	if r.layout.Algorithm == 0 && r.layout.Per > 0 { // only its burst was wrong
		r.layout.Algorithm, r.err = layout.GCRA, ""
	}
	if r.layout.Algorithm != layout.GCRA {
		return r.withError("Rule.Burst is for a GCRA only")
	}
	r.layout.Burst, r.ownBurst = burst, true
	return r.withError("")
}

// WithBlock returns the rule with a Block; the zero Block is none. The counter is the same.
func (r Rule) WithBlock(b Block) Rule {
	if b == (Block{}) {
		r.layout.BlockAfter, r.layout.BlockFor = 0, 0
		return r
	}
	r.layout.BlockAfter, r.layout.BlockFor = int64(b.After), b.For.Microseconds()
	err := durationError("Rule.Block.For", b.For)
	switch {
	case b.After < 1 || b.After > maxAfter:
		err = fmt.Sprintf("Rule.Block.After is %d, want 1 to %d", b.After, maxAfter)
	case r.layout.Limit == 0:
		err = "Rule.Block is set, but there is no limit, so nothing is denied"
	}
	return r.withError(err)
}

// WithName returns the rule with a name in place of its Per: letters, digits, "-" and "_", at
// most 64 of them; "" means its Per again. Rules of different names have different counters.
func (r Rule) WithName(name string) Rule {
	if name != "" && !names.Valid(name) {
		return r.withError(fmt.Sprintf("Rule.Name is %q, want %s", name, names.Rule))
	}
	if r.layout.Name, r.layout.Named = name, name != ""; name == "" {
		r.layout.Name = periodName(r.Per())
	}
	return r.withID()
}

// WithStream returns a sliding log that Redis keeps as a stream, which is smaller than the sorted
// set that it is otherwise, and is trimmed now and then. The answers are the same, the counters
// are different ones.
func (r Rule) WithStream() Rule {
	if r.layout.Algorithm != layout.Log {
		return r.withError("Rule.Stream is for a SlidingLog only")
	}
	r.layout.Stream = true
	return r.withID()
}

// withError returns the rule, or one with an error: its own, err, or that of its burst.
func (r Rule) withError(err string) Rule {
	switch {
	case r.layout.Algorithm == 0:
		return r
	case err != "":
		return Rule{err: err}
	case r.layout.Algorithm != layout.GCRA:
		return r
	}
	if r.err = burstError("Rule.Burst", r.layout.Burst, r.layout.Per); r.err != "" {
		r.layout.Algorithm = 0
		return r
	}
	r.layout.Expiry = ceilDiv(r.layout.Burst*r.layout.Per, r.layout.Limit)
	return r
}

// withID returns the rule with its id, unless it has an error.
func (r Rule) withID() Rule {
	if r.layout.Algorithm != 0 {
		r.setID()
	}
	return r
}
