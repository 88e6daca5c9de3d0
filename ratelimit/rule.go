package ratelimit

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// Rule defines how units are counted and what the limit is. It is a comparable value, made
// by [PerSecond], [PerMinute], [PerHour], [PerDay], [Per], [Buckets], [SlidingLog],
// [FixedWindow], [GCRA] or [Throttle], and adjusted by its With methods.
//
// A rule that was given a wrong number carries an error, which [Rule.Err] returns and so does
// whatever is given the rule: [NewLimiter], [Provide], [Middleware], a store. The zero Rule is
// such a rule.
//
// A key has one counter per rule. Rules that differ only in limit, burst, expiry or block
// share it, so a limit can be changed while keys are in use: the units stay, the new
// limit decides. Rules that share a counter and have the same Block also share what it remembers.
type Rule struct {
	layout   layout.Layout
	err      string // what is wrong with the rule: a field and, after a space, the reason
	ownBurst bool   // the burst was chosen, and doesn't follow the limit
}

// newRule returns a rule with its name and id, or with an error.
func newRule(l layout.Layout, err string) Rule {
	if err != "" {
		return Rule{err: err}
	}
	l.Burst, l.Name = l.Limit, periodName(micros(l.Per))
	r := Rule{layout: l}
	r.setID()
	return r
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

// setID sets the rule's id: a hash of all that distinguishes its counter from others.
func (r *Rule) setID() {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %t %d %d %d %t %s", r.layout.Algorithm, r.layout.Stream, r.layout.Per, r.layout.Interval, r.layout.Span, r.layout.Named, r.layout.Name)
	r.layout.ID = h.Sum64()
}

// Err returns what is wrong with the rule, an [*OptionError], or nil.
func (r Rule) Err() error {
	if r.layout.Algorithm != 0 {
		return nil
	}
	if r.err == "" {
		return option.Errorf("ratelimit", "Rule", "is the zero Rule")
	}
	field, reason, _ := strings.Cut(r.err, " ")
	return option.Errorf("ratelimit", field, "%s", reason)
}

// Name returns the name that distinguishes the rule from others of its policy: the name that
// was chosen by [Rule.WithName], or else the Per, such as "60s" or "24h".
func (r Rule) Name() string { return r.layout.Name }

// Algorithm returns how the rule counts: "buckets", "log", "window" or "gcra"; "" for a rule
// with an error.
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

// Block returns what denied takes lead to.
func (r Rule) Block() Block {
	return Block{After: int(r.layout.BlockAfter), For: micros(r.layout.BlockFor)}
}

// Layout returns the rule's numbers for a store, which must not change them. Package storage
// documents them.
func (r *Rule) Layout() *layout.Layout { return &r.layout }

// SharesCounter reports whether a key has one counter for both rules.
func (r Rule) SharesCounter(other Rule) bool {
	a, b := r.layout, other.layout
	for _, l := range [...]*layout.Layout{&a, &b} {
		l.Limit, l.Burst, l.Expiry, l.BlockAfter, l.BlockFor = 0, 0, 0, 0, 0
	}
	return a == b
}

// String describes the rule, such as "buckets(10 per 1m0s)".
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
	if r.layout.Named {
		limit = r.layout.Name + ": " + limit
	}
	if r.layout.Stream {
		limit += ", stream"
	}
	return fmt.Sprintf("%v(%s)", r.layout.Algorithm, limit)
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
