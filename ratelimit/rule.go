package ratelimit

import (
	"fmt"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/internal/names"
	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// Rule defines how units are counted and what the limit is. It is made by [PerSecond],
// [PerMinute], [PerHour], [PerDay], [Per], [Buckets], [SlidingLog], [FixedWindow], [GCRA] or
// [Throttle], and adjusted by its With methods. A Rule has the size of a pointer. It can be
// compared and can be the key of a map.
//
// An invalid rule carries its error: [Rule.Err] returns it, and so does every function that is
// given the rule, such as [NewLimiter]. The zero Rule is invalid.
//
// A key has one counter per rule. Rules that differ only in limit, burst, expiry or block
// share it, so a limit can be changed while keys are in use: the units stay, the new
// limit decides. Rules that share a counter and have the same Block also share what it remembers.
type Rule struct{ d *description } // nil for the zero Rule

// newRule returns a rule with its name and id, or with an error.
func newRule(l layout.Layout, err string) Rule {
	if err != "" {
		return invalidRule(err)
	}
	l.Burst, l.Name = l.Limit, periodName(micros(l.Per))
	d := description{layout: l}
	d.setID()
	return d.rule("")
}

// periodName returns the name of a rule over per: a number of hours, or of the largest smaller unit
// that divides it.
func periodName(per time.Duration) string {
	for _, u := range [...]struct {
		length time.Duration
		name   string
	}{{time.Hour, "h"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if per%u.length == 0 {
			return fmt.Sprintf("%d%s", per/u.length, u.name)
		}
	}
	return fmt.Sprintf("%dus", per.Microseconds())
}

// Err returns what is wrong with the rule, an [*OptionError], or nil.
func (r Rule) Err() error {
	d := r.description()
	if d.layout.Algorithm != 0 {
		return nil
	}
	field, reason, _ := strings.Cut(d.err, " ")
	return option.Errorf("ratelimit", field, "%s", reason)
}

// Name returns the name that distinguishes the rule from others of its policy: the name that
// was chosen by [Rule.WithName], or else the Per, such as "60s" or "24h".
func (r Rule) Name() string { return r.Layout().Name }

// Algorithm returns how the rule counts: "buckets", "log", "window" or "gcra"; "" for a rule
// with an error.
func (r Rule) Algorithm() string { return r.Layout().Algorithm.String() }

// Limit returns how many units a Per allows, in the sense of the algorithm, 0 if the rule
// only counts: the most in any Per for buckets and logs, the most in a window, and for a
// GCRA how many come back.
func (r Rule) Limit() int64 { return r.Layout().Limit }

// Burst returns the largest number of units that can pass at once: that of a GCRA, the
// Limit of all others.
func (r Rule) Burst() int64 { return r.Layout().Burst }

// Per returns the interval that the limit is over.
func (r Rule) Per() time.Duration { return micros(r.Layout().Per) }

// Interval returns the length of a bucket, 0 if there are none.
func (r Rule) Interval() time.Duration { return micros(r.Layout().Interval) }

// Span returns the longest interval that can be counted, 0 if none can.
func (r Rule) Span() time.Duration { return micros(r.Layout().Span) }

// Expiry returns how long after its last charge a counter may still matter. For a GCRA
// that is how long a full burst takes to come back; an Add beyond the burst lasts longer.
func (r Rule) Expiry() time.Duration { return micros(r.Layout().Expiry) }

// Block returns what denied takes lead to.
func (r Rule) Block() Block {
	l := r.Layout()
	return Block{After: int(l.BlockAfter), For: micros(l.BlockFor)}
}

// Layout returns the rule's numbers for a store, which must not change them. Package storage
// documents them.
func (r Rule) Layout() *layout.Layout { return &r.description().layout }

// SharesCounter reports whether a key has one counter for both rules.
func (r Rule) SharesCounter(other Rule) bool {
	return r == other || r.description().counter() == other.description().counter()
}

// String describes the rule, such as "buckets(10 per 1m0s)".
func (r Rule) String() string {
	d, l := r.description(), r.Layout()
	if l.Algorithm == 0 {
		return "no rule"
	}
	limit := "no limit"
	if l.Limit > 0 {
		limit = fmt.Sprintf("%d per %v", l.Limit, r.Per())
	}
	if d.ownBurst {
		limit += fmt.Sprintf(", burst %d", l.Burst)
	}
	if l.Named {
		limit = l.Name + ": " + limit
	}
	if l.Stream {
		limit += ", stream"
	}
	return fmt.Sprintf("%v(%s)", l.Algorithm, limit)
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

// Block denies a key for a fixed time once it has been denied too often: the After-th take that
// the rule denies within one Per of the first one blocks the key for this rule for the time For.
// After 1 blocks at the first denial. The zero Block never does.
//
// While it lasts, every take and peek is denied, with a RetryAfter of what is left of it,
// or of the rule's own wait if that is longer, and Remaining is 0. Takes that it denies do
// not prolong it. Add and Count ignore a block, and Reset ends it.
type Block struct {
	After int           // 1 to 2^31 - 1
	For   time.Duration // whole microseconds
}

const maxAfter = 1<<31 - 1
