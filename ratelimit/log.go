package ratelimit

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// LogOptions describes a counter that remembers every charge.
type LogOptions struct {
	// Name tells the rule from others of its policy and of its key. Letters, digits,
	// "-" and "_", at most 64 of them; it may be empty.
	Name string
	// Limit is the largest number of units in any Per, at most 2^53. Zero means no
	// limit: the rule only counts, and remembers without a bound of its own.
	Limit int64
	// Per is the interval that the limit is over, and the longest that can be counted.
	Per time.Duration
	// Encoding is how Redis keeps the log. Logs of different encodings are different
	// counters.
	Encoding Encoding
	// Block is what denied takes lead to. Zero means nothing.
	Block Block
}

// Encoding is a way to keep a sliding log in Redis. The answers are the same.
type Encoding uint8

// The encodings.
const (
	SortedSet Encoding = iota // a sorted set, which forgets exactly
	Stream                    // a stream, which is smaller and is trimmed now and then
)

// String returns "sorted set" or "stream".
func (e Encoding) String() string {
	switch e {
	case SortedSet:
		return "sorted set"
	case Stream:
		return "stream"
	}
	return fmt.Sprintf("Encoding(%d)", uint8(e))
}

// SlidingLog returns a rule that is exact: a unit counts from when it was charged until
// exactly a Per later. It takes room for every charge, those of one microsecond together:
// in memory, 8 to 15 bytes.
//
// Any interval up to Per can be counted, at the cost of a binary search. A refund costs
// as much as there are later charges. Durations are in whole microseconds. An error names
// the field and its value.
func SlidingLog(o LogOptions) (Rule, error) {
	const of = "ratelimit: LogOptions."
	if err := cmp.Or(
		checkName(of+"Name", o.Name),
		checkLimit(of+"Limit", o.Limit, 0),
		checkDuration(of+"Per", o.Per),
		o.Block.check(of+"Block", o.Limit),
	); err != nil {
		return Rule{}, err
	}
	if o.Encoding > Stream {
		return Rule{}, fmt.Errorf("%sEncoding is %v, want SortedSet or Stream", of, o.Encoding)
	}
	per := o.Per.Microseconds()
	r := Rule{encoding: o.Encoding, name: o.Name, layout: layout.Layout{
		Algorithm: layout.Log, Limit: o.Limit, Burst: o.Limit, Per: per, Span: per, Expiry: per, Stream: o.Encoding == Stream, BlockAfter: int64(o.Block.After), BlockFor: o.Block.For.Microseconds(),
	}}
	return r.identified(), nil
}
