package ratelimit

import (
	"fmt"
	"time"
)

// Rule says how units are counted and what the limit is. It is a comparable value, made
// by [Buckets]. The zero Rule is invalid.
//
// A key has one counter per rule; rules that differ only in limit or expiry share it, so
// a limit can be changed while keys are in use: the units stay, the new limit decides.
type Rule struct {
	algorithm algorithm
	name      string
	limit     int64
	// In microseconds.
	per, interval, span, expiry int64
}

// Name returns the rule's name, which tells it from others of its policy. It may be "".
func (r Rule) Name() string { return r.name }

// Algorithm returns how the rule counts: "buckets".
func (r Rule) Algorithm() string { return r.algorithm.String() }

// Limit returns the largest number of units in any Per, 0 if the rule only counts.
func (r Rule) Limit() int64 { return r.limit }

// Per returns the interval that the limit is over.
func (r Rule) Per() time.Duration { return micros(r.per) }

// Interval returns the length of a bucket.
func (r Rule) Interval() time.Duration { return micros(r.interval) }

// Span returns the longest interval that can be counted.
func (r Rule) Span() time.Duration { return micros(r.span) }

// Expiry returns how long a subject is kept after its last op.
func (r Rule) Expiry() time.Duration { return micros(r.expiry) }

// String returns the rule in short, such as "buckets(10 per 1m0s)".
func (r Rule) String() string {
	if r.algorithm == 0 {
		return "no rule"
	}
	limit := "no limit"
	if r.limit > 0 {
		limit = fmt.Sprintf("%d per %v", r.limit, r.Per())
	}
	if r.name != "" {
		limit = r.name + ": " + limit
	}
	return fmt.Sprintf("%v(%s)", r.algorithm, limit)
}

// counter returns the part of the rule that tells its counter from a key's others.
func (r Rule) counter() Rule {
	r.limit, r.expiry = 0, 0
	return r
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// ceilDiv and floorDiv divide by a positive b.
func ceilDiv(a, b int64) int64 { return -floorDiv(-a, b) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
