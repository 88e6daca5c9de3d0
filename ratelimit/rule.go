package ratelimit

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// Rule defines how units are counted and what the limit is. It is made by a constructor such as [PerMinute] and
// adjusted by its With methods. It has the size of a pointer, and is comparable.
//
// An invalid rule carries its error: [Rule.Err] returns it, and so does every function that is given the rule, such as
// [NewLimiter]. The zero Rule is invalid.
//
// A key has one counter per rule. Rules that differ only in limit, burst, expiry or block share the counter. So a
// limit can be changed while keys are in use: the counted units stay, and the new limit decides. Rules that share a
// counter and have the same Block also share the block's state.
type Rule struct{ layout *layout.Layout } // nil for the zero Rule

var zeroRule = layout.Layout{Err: "Rule is the zero Rule"}

// newRule returns a rule with its name and id, or with an error.
func newRule(l layout.Layout, err string) Rule {
	if err != "" {
		return invalidRule(err)
	}
	l.Burst, l.Name = l.Limit, defaultName(&l)
	l.SetID()
	return changed(l, "")
}

func invalidRule(err string) Rule { return Rule{layout.Intern(layout.Layout{Err: err})} }

// changed returns the rule of a modified layout, or an invalid rule if err is not "".
func changed(l layout.Layout, err string) Rule {
	switch {
	case l.Algorithm == 0:
	case err != "":
		return invalidRule(err)
	case l.Algorithm == layout.GCRA:
		if l.Err = burstError("Rule.Burst", l.Burst, l.Per); l.Err != "" {
			l.Algorithm = 0
			break
		}
		l.Expiry = (l.Burst*l.Per-1)/l.Limit + 1
	}
	return Rule{layout.Intern(l)}
}

// defaultName returns the name of a rule without [Rule.WithName].
func defaultName(l *layout.Layout) string {
	switch {
	case l.Concurrent:
		return "concurrent"
	case l.Period != 0:
		return l.Period.String()
	}
	return periodName(layout.Duration(l.Per))
}

// periodName returns per in hours, seconds, milliseconds or microseconds, in the largest unit that divides it.
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

// Err returns the error of an invalid rule, an [*OptionError], or nil.
func (r Rule) Err() error {
	l := r.Layout()
	if l.Algorithm != 0 {
		return nil
	}
	field, reason, _ := strings.Cut(l.Err, " ")
	return option.Errorf("ratelimit", field, "%s", reason)
}

// Name returns the name chosen by [Rule.WithName], or else the Per, such as "60s" or "24h", or "concurrent", or the
// period, such as "month".
func (r Rule) Name() string { return r.Layout().Name }

// Algorithm returns "buckets", "log", "window" or "gcra"; "" for an invalid rule.
func (r Rule) Algorithm() string { return r.Layout().Algorithm.String() }

// Limit returns the number of units that a Per or a window allows, or that come back in a Per of a GCRA. It is 0 if
// the rule only counts.
func (r Rule) Limit() int64 { return r.Layout().Limit }

// Burst returns the largest number of units that can pass at once.
func (r Rule) Burst() int64 { return r.Layout().Burst }

// Per returns the interval to which the limit applies, or the life of a [Concurrent]. For a [Calendar], it is 24 hours, 7
// days or 31 days.
func (r Rule) Per() time.Duration { return layout.Duration(r.Layout().Per) }

// Interval returns the length of a bucket, or 0 if the rule has no buckets.
func (r Rule) Interval() time.Duration { return layout.Duration(r.Layout().Interval) }

// Span returns the longest interval that can be counted, or 0 if the rule cannot count.
func (r Rule) Span() time.Duration { return layout.Duration(r.Layout().Span) }

// Expiry returns how long a counter may affect results after its last charge. After an Add beyond a GCRA's burst, the
// time is longer.
func (r Rule) Expiry() time.Duration { return layout.Duration(r.Layout().Expiry) }

// Block returns the rule's block, or the zero Block.
func (r Rule) Block() Block {
	l := r.Layout()
	return Block{After: int(l.BlockAfter), For: layout.Duration(l.BlockFor)}
}

// Layout returns the rule's parameters in the form that stores use. The caller must not modify the result.
func (r Rule) Layout() *layout.Layout {
	if r.layout == nil {
		return &zeroRule
	}
	return r.layout
}

// String describes the rule, such as "buckets(10 per 1m0s)".
func (r Rule) String() string {
	l := r.Layout()
	if l.Algorithm == 0 {
		return "no rule"
	}
	limit := "no limit"
	if l.Limit > 0 {
		limit = fmt.Sprintf("%d per %s", l.Limit, l.PerText())
	}
	if l.Concurrent {
		limit = fmt.Sprintf("%d at a time, for %v at most", l.Limit, r.Per())
	}
	if l.OwnBurst {
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

// WithLimit returns the rule with another limit, at least 1. The counter is the same. A GCRA's burst becomes the
// limit, unless it was set with WithBurst.
func (r Rule) WithLimit(limit int64) Rule {
	l := *r.Layout()
	l.Limit = limit
	if !l.OwnBurst {
		l.Burst = limit
	}
	return changed(l, limitError("Rule.Limit", limit, 1))
}

// WithoutLimit returns a rule that only counts. It is for buckets and logs without a Block. The counter is the same.
func (r Rule) WithoutLimit() Rule {
	l := *r.Layout()
	l.Limit, l.Burst = 0, 0
	switch {
	case l.Algorithm != layout.Buckets && l.Algorithm != layout.Log || l.Concurrent:
		return changed(l, "Rule.Limit is missing, and only buckets and logs count without one")
	case l.BlockAfter > 0:
		return changed(l, "Rule.Limit is missing, and a Block needs one")
	}
	return changed(l, "")
}

// WithBurst returns a GCRA with another burst, which is how many units can be taken at once after a rest. In any time
// d, at most Burst + Limit × d/Per pass. (Burst + 1) × Per in microseconds is at most 2^53, which for a day is a burst
// of 104,248. The counter is the same.
func (r Rule) WithBurst(burst int64) Rule {
	l := *r.Layout()
	if l.Algorithm == 0 && l.Per > 0 { // only its burst was wrong
		l.Algorithm, l.Err = layout.GCRA, ""
		l.SetID()
	}
	if l.Algorithm != layout.GCRA {
		return changed(l, "Rule.Burst is for a GCRA only")
	}
	l.Burst, l.OwnBurst = burst, true
	return changed(l, "")
}

// WithBlock returns the rule with a Block. The zero Block removes it. The counter is the same.
func (r Rule) WithBlock(b Block) Rule {
	l := *r.Layout()
	if b == (Block{}) {
		l.BlockAfter, l.BlockFor = 0, 0
		return changed(l, "")
	}
	l.BlockAfter, l.BlockFor = int64(b.After), b.For.Microseconds()
	err := durationError("Rule.Block.For", b.For)
	switch {
	case b.After < 1 || b.After > math.MaxInt32:
		err = fmt.Sprintf("Rule.Block.After is %d, want 1 to %d", b.After, math.MaxInt32)
	case l.Limit == 0:
		err = "Rule.Block is set, but there is no limit, so nothing is denied"
	}
	return changed(l, err)
}

// WithName returns the rule with a name in place of its Per: letters, digits, "-" and "_", at most 64 of them. An
// empty name means the Per again. Rules with different names have different counters.
func (r Rule) WithName(name string) Rule {
	l := *r.Layout()
	if name != "" && !option.ValidName(name) {
		return changed(l, fmt.Sprintf("Rule.Name is %q, want %s", name, option.NameSyntax))
	}
	if l.Name, l.Named = name, name != ""; name == "" {
		l.Name = defaultName(&l)
	}
	l.SetID()
	return changed(l, "")
}

// WithStream returns a sliding log that Redis keeps as a stream, which is smaller than a sorted set. The results are
// the same, but the counter is a different one.
func (r Rule) WithStream() Rule {
	l := *r.Layout()
	if l.Algorithm != layout.Log || l.Concurrent {
		return changed(l, "Rule.Stream is for a SlidingLog only")
	}
	l.Stream = true
	l.SetID()
	return changed(l, "")
}

// Block denies a key for a fixed time after too many denials. If a rule denies After takes within a Per of the first
// of them, it blocks the key for the time For. If After is 1, the first denial blocks the key. The zero Block never
// blocks.
//
// During a block every take and peek is denied, with Remaining 0. RetryAfter is the rest of the block, or the rule's
// own wait if that is longer. Takes that the block denies do not prolong it. Add and Count ignore a block, and Reset
// ends it.
type Block struct {
	After int           // 1 to 2^31 - 1
	For   time.Duration // whole microseconds
}
