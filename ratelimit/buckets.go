package ratelimit

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// BucketOptions describes a counter in time buckets.
type BucketOptions struct {
	// Name tells the rule from others of its policy and of its key. Letters, digits,
	// "-" and "_", at most 64 of them; it may be empty.
	Name string
	// Limit is the largest number of units in any Per, at most 2^53. Zero means no
	// limit: the rule only counts.
	Limit int64
	// Per is the interval that the limit is over, from Interval to Span. Zero means
	// Span.
	Per time.Duration
	// Interval is the length of a bucket. Counted intervals are rounded up to whole
	// buckets, and may be too long by one more. Zero means 5 s.
	Interval time.Duration
	// Span is the longest interval that can be counted: a multiple of Interval, at
	// least 3 and at most 65536 times as long. A counter takes 4 to 5 bytes of memory
	// for each bucket, twice that if it holds more than 2^32 units. Zero means 600 s.
	Span time.Duration
	// Expiry is how long a counter is kept after its last charge, at least Span. Zero
	// means twice Span, so 1200 s. What can still be counted is kept in any case.
	Expiry time.Duration
	// Block is what denied takes lead to. Zero means nothing.
	Block Block
}

const (
	minBuckets = 3
	maxBuckets = 1 << 16
)

// Buckets returns a rule that counts in time buckets. Durations are in whole
// microseconds. An error names the field and its value.
func Buckets(o BucketOptions) (Rule, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return Rule{}, err
	}
	r := Rule{name: o.Name, layout: layout.Layout{
		Algorithm:  layout.Buckets,
		Window:     int32((o.Per + o.Interval - 1) / o.Interval),
		Buckets:    int32(o.Span / o.Interval),
		Limit:      o.Limit,
		Burst:      o.Limit,
		Per:        o.Per.Microseconds(),
		Interval:   o.Interval.Microseconds(),
		Span:       o.Span.Microseconds(),
		Expiry:     o.Expiry.Microseconds(),
		BlockAfter: int64(o.Block.After), BlockFor: o.Block.For.Microseconds(),
	}}
	return r.identified(), nil
}

func (o BucketOptions) withDefaults() BucketOptions {
	if o.Interval == 0 {
		o.Interval = 5 * time.Second
	}
	if o.Span == 0 {
		o.Span = 600 * time.Second
	}
	if o.Per == 0 {
		o.Per = o.Span
	}
	if o.Expiry == 0 {
		// A span out of range is reported by check; twice it must not overflow before.
		o.Expiry = 2 * min(o.Span, MaxDuration/2)
	}
	return o
}

func (o BucketOptions) check() error {
	const of = "ratelimit: BucketOptions."
	if err := cmp.Or(
		checkDuration(of+"Interval", o.Interval),
		checkDuration(of+"Span", o.Span),
		checkDuration(of+"Per", o.Per),
		checkDuration(of+"Expiry", o.Expiry),
		checkLimit(of+"Limit", o.Limit, 0),
		checkName(of+"Name", o.Name),
		o.Block.check(of+"Block", o.Limit),
	); err != nil {
		return err
	}
	switch buckets := o.Span / o.Interval; {
	case o.Span%o.Interval != 0:
		return fmt.Errorf(of+"Span is %v, want a multiple of Interval %v", o.Span, o.Interval)
	case buckets < minBuckets || buckets > maxBuckets:
		return fmt.Errorf(of+"Span is %v, want %d to %d times Interval %v", o.Span, minBuckets, maxBuckets, o.Interval)
	case o.Per > o.Span:
		return fmt.Errorf(of+"Per is %v, want at most Span %v", o.Per, o.Span)
	case o.Per < o.Interval:
		return fmt.Errorf(of+"Per is %v, want at least Interval %v", o.Per, o.Interval)
	case o.Expiry < o.Span:
		return fmt.Errorf(of+"Expiry is %v, want at least Span %v", o.Expiry, o.Span)
	}
	return nil
}
