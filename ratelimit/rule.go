package ratelimit

import (
	"fmt"
	"hash/fnv"
	"time"
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
	algorithm algorithm
	encoding  Encoding
	ownBurst  bool // burst was chosen, and doesn't follow the limit
	name      string
	limit     int64
	burst     int64 // the largest n that can pass
	// In microseconds.
	per, interval, span, expiry int64
	// In buckets: how many before the newest the limit is over, and how many there are
	// before the newest.
	window, buckets int32
	block           Block
	id              uint64 // hash of what tells its counter from a key's others
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
func (r Rule) Algorithm() string { return r.algorithm.String() }

// Limit returns how many units a Per allows, in the sense of the algorithm, 0 if the rule
// only counts: the most in any Per for buckets and logs, the most in a window, and for a
// GCRA how many come back.
func (r Rule) Limit() int64 { return r.limit }

// Burst returns the largest number of units that can pass at once: that of a GCRA, the
// Limit of all others.
func (r Rule) Burst() int64 { return r.burst }

// Per returns the interval that the limit is over.
func (r Rule) Per() time.Duration { return micros(r.per) }

// Interval returns the length of a bucket, 0 if there are none.
func (r Rule) Interval() time.Duration { return micros(r.interval) }

// Span returns the longest interval that can be counted, 0 if none can.
func (r Rule) Span() time.Duration { return micros(r.span) }

// Expiry returns how long after its last charge a counter may still matter. For a GCRA
// that is how long a full burst takes to come back; an Add beyond the burst lasts longer.
func (r Rule) Expiry() time.Duration { return micros(r.expiry) }

// Encoding returns how Redis keeps a sliding log.
func (r Rule) Encoding() Encoding { return r.encoding }

// Block returns what denied takes lead to.
func (r Rule) Block() Block { return r.block }

// SharesCounter tells whether a key has one counter for both rules.
func (r Rule) SharesCounter(other Rule) bool {
	return r.id == other.id && r.algorithm == other.algorithm && r.encoding == other.encoding &&
		r.per == other.per && r.interval == other.interval && r.span == other.span && r.name == other.name
}

// WithLimit returns the rule with another limit, such as that of one caller's plan. The
// counter is the same. A GCRA's burst follows, unless it was chosen. An error says what
// is wrong with the limit.
func (r Rule) WithLimit(limit int64) (Rule, error) {
	if r.algorithm == 0 {
		return Rule{}, fmt.Errorf("%w: WithLimit of the zero Rule", ErrOp)
	}
	r.limit = limit
	if !r.ownBurst {
		r.burst = limit
	}
	return r.tier("WithLimit")
}

// WithBurst returns a GCRA with another burst; zero is its limit. The counter is the
// same. An error says what is wrong with the burst.
func (r Rule) WithBurst(burst int64) (Rule, error) {
	if r.algorithm != leaky {
		return Rule{}, fmt.Errorf("%w: WithBurst of %v, which has none", ErrOp, r)
	}
	r.burst, r.ownBurst = burst, burst != 0
	if burst == 0 {
		r.burst = r.limit
	}
	return r.tier("WithBurst")
}

// tier checks the limits that method has set.
func (r Rule) tier(method string) (Rule, error) {
	least := int64(1)
	if (r.algorithm == bucketed || r.algorithm == logged) && r.block == (Block{}) {
		least = 0
	}
	if err := checkLimit("ratelimit: "+method+": limit", r.limit, least); err != nil {
		return Rule{}, err
	}
	if r.algorithm == leaky {
		if err := checkBurst("ratelimit: "+method+": burst", r.burst, r.per); err != nil {
			return Rule{}, err
		}
		r.expiry = ceilDiv(r.burst*r.per, r.limit)
	}
	return r, nil
}

// String returns the rule in short, such as "buckets(10 per 1m0s)".
func (r Rule) String() string {
	if r.algorithm == 0 {
		return "no rule"
	}
	limit := "no limit"
	if r.limit > 0 {
		limit = fmt.Sprintf("%d per %v", r.limit, r.Per())
	}
	if r.ownBurst {
		limit += fmt.Sprintf(", burst %d", r.burst)
	}
	if r.name != "" {
		limit = r.name + ": " + limit
	}
	return fmt.Sprintf("%v(%s)", r.algorithm, limit)
}

// identified returns the rule with its id: all that tells its counter from others.
func (r Rule) identified() Rule {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %d %d %d %d %s", r.algorithm, r.encoding, r.per, r.interval, r.span, r.name)
	r.id = h.Sum64()
	return r
}

// micros saturates at both ends: a clock that goes back by centuries makes waits that
// long, and the wait for what is past is none.
func micros(n int64) time.Duration {
	return time.Duration(min(max(0, n), MaxDuration.Microseconds())) * time.Microsecond
}

// ceilDiv and floorDiv divide by a positive b.
func ceilDiv(a, b int64) int64 { return -floorDiv(-a, b) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
