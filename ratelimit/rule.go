package ratelimit

import (
	"fmt"
	"strings"
	"time"

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
