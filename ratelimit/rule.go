package ratelimit

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// Rule says how units are counted and what the limit is. It is a comparable value, made
// by [Buckets], [SlidingLog], [FixedWindow], [Throttle] or [GCRA]. The zero Rule is
// invalid.
//
// A key has one counter per rule; rules that differ only in limit, burst, expiry or block
// share it, so a limit can be changed while keys are in use: the units stay, the new
// limit decides. See [Rule.WithLimit]. Rules that share a counter and have the same Block
// also share what it remembers.
type Rule struct {
	layout   layout.Layout
	name     string
	encoding Encoding
	ownBurst bool // the burst was chosen, and doesn't follow the limit
}

// Must returns r, or panics if err is not nil. It is for rules that are fixed in the
// program: Must(Buckets(…)).
func Must(r Rule, err error) Rule {
	if err != nil {
		panic(err)
	}
	return r
}

// Name returns the rule's name, which tells it from others of its policy. It may be "".
func (r Rule) Name() string { return r.name }

// Algorithm returns how the rule counts: "buckets", "log", "window" or "gcra"; "" for the
// zero Rule.
func (r Rule) Algorithm() string { return r.layout.Algorithm.String() }

// Limit returns how many units a Per allows, in the sense of the algorithm, 0 if the rule
// only counts: the most in any Per for buckets and logs, the most in a window, and for a
// GCRA how many come back.
func (r Rule) Limit() int64 { return r.layout.Limit }

// Burst returns the largest number of units that can pass at once: that of a GCRA, the
// Limit of all others.
func (r Rule) Burst() int64 { return r.layout.Burst }

// Per returns the interval that the limit is over.
func (r Rule) Per() time.Duration { return micros(r.layout.Per) }

// Interval returns the length of a bucket, 0 if there are none.
func (r Rule) Interval() time.Duration { return micros(r.layout.Interval) }

// Span returns the longest interval that can be counted, 0 if none can.
func (r Rule) Span() time.Duration { return micros(r.layout.Span) }

// Expiry returns how long after its last charge a counter may still matter. For a GCRA
// that is how long a full burst takes to come back; an Add beyond the burst lasts longer.
func (r Rule) Expiry() time.Duration { return micros(r.layout.Expiry) }

// Encoding returns how Redis keeps a sliding log.
func (r Rule) Encoding() Encoding { return r.encoding }

// Block returns what denied takes lead to.
func (r Rule) Block() Block {
	return Block{After: int(r.layout.BlockAfter), For: micros(r.layout.BlockFor)}
}

// Layout returns the rule's numbers for a store, which must not change them. Package storage
// documents them.
func (r *Rule) Layout() *layout.Layout { return &r.layout }

// SharesCounter tells whether a key has one counter for both rules.
func (r Rule) SharesCounter(other Rule) bool {
	return r.layout.ID == other.layout.ID && r.layout.Algorithm == other.layout.Algorithm && r.encoding == other.encoding &&
		r.layout.Per == other.layout.Per && r.layout.Interval == other.layout.Interval && r.layout.Span == other.layout.Span && r.name == other.name
}

// WithLimit returns the rule with another limit, such as that of one caller's plan. The
// counter is the same. A GCRA's burst follows, unless it was chosen. An error says what
// is wrong with the limit.
func (r Rule) WithLimit(limit int64) (Rule, error) {
	if r.layout.Algorithm == 0 {
		return Rule{}, fmt.Errorf("%w: WithLimit of the zero Rule", ErrOp)
	}
	r.layout.Limit = limit
	if !r.ownBurst {
		r.layout.Burst = limit
	}
	return r.tier("WithLimit")
}

// WithBurst returns a GCRA with another burst; zero is its limit. The counter is the
// same. An error says what is wrong with the burst.
func (r Rule) WithBurst(burst int64) (Rule, error) {
	if r.layout.Algorithm != layout.GCRA {
		return Rule{}, fmt.Errorf("%w: WithBurst of %v, which has none", ErrOp, r)
	}
	r.layout.Burst, r.ownBurst = burst, burst != 0
	if burst == 0 {
		r.layout.Burst = r.layout.Limit
	}
	return r.tier("WithBurst")
}

// tier checks the limits that method has set.
func (r Rule) tier(method string) (Rule, error) {
	least := int64(1)
	if (r.layout.Algorithm == layout.Buckets || r.layout.Algorithm == layout.Log) && r.layout.BlockAfter == 0 {
		least = 0
	}
	if err := checkLimit("ratelimit: "+method+": limit", r.layout.Limit, least); err != nil {
		return Rule{}, err
	}
	if r.layout.Algorithm == layout.GCRA {
		if err := checkBurst("ratelimit: "+method+": burst", r.layout.Burst, r.layout.Per); err != nil {
			return Rule{}, err
		}
		r.layout.Expiry = ceilDiv(r.layout.Burst*r.layout.Per, r.layout.Limit)
	}
	return r, nil
}

// String returns the rule in short, such as "buckets(10 per 1m0s)".
func (r Rule) String() string {
	if r.layout.Algorithm == 0 {
		return "no rule"
	}
	limit := "no limit"
	if r.layout.Limit > 0 {
		limit = fmt.Sprintf("%d per %v", r.layout.Limit, r.Per())
	}
	if r.ownBurst {
		limit += fmt.Sprintf(", burst %d", r.layout.Burst)
	}
	if r.name != "" {
		limit = r.name + ": " + limit
	}
	return fmt.Sprintf("%v(%s)", r.layout.Algorithm, limit)
}

// identified returns the rule with its id: all that tells its counter from others.
func (r Rule) identified() Rule {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %d %d %d %d %s", r.layout.Algorithm, r.encoding, r.layout.Per, r.layout.Interval, r.layout.Span, r.name)
	r.layout.ID = h.Sum64()
	return r
}

// micros saturates at both ends: a clock that goes back by centuries makes waits that
// long, and the wait for what is past is none.
func micros(n int64) time.Duration {
	return time.Duration(min(max(0, n), MaxDuration.Microseconds())) * time.Microsecond
}

// ceilDiv divides by a positive b.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}
