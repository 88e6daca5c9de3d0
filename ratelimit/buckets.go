package ratelimit

import (
	"fmt"
	"time"
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
	// least 3 and at most 65536 times as long. A counter takes 8 bytes for each
	// bucket. Zero means 600 s.
	Span time.Duration
	// Expiry is how long a subject is kept after its last op, at least Span. Zero
	// means twice Span, so 1200 s. What can still be counted is kept in any case.
	Expiry time.Duration
}

const (
	minBuckets = 3
	maxBuckets = 1 << 16
	// maxTime keeps sums of times and durations far from overflow.
	maxTime = 100 * 365 * 24 * time.Hour
)

// Buckets returns a rule that counts in time buckets. Durations are in whole
// microseconds. An error names the field and its value.
func Buckets(o BucketOptions) (Rule, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return Rule{}, err
	}
	return Rule{
		algorithm: bucketed,
		name:      o.Name,
		limit:     o.Limit,
		per:       o.Per.Microseconds(),
		interval:  o.Interval.Microseconds(),
		span:      o.Span.Microseconds(),
		expiry:    o.Expiry.Microseconds(),
	}, nil
}

// Must returns r, or panics if err is not nil. It is for rules that are fixed in the
// program: Must(Buckets(…)).
func Must(r Rule, err error) Rule {
	if err != nil {
		panic(err)
	}
	return r
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
		o.Expiry = 2 * min(o.Span, maxTime/2)
	}
	return o
}

func (o BucketOptions) check() error {
	if err := o.checkUnits(); err != nil {
		return err
	}
	buckets := o.Span / o.Interval
	switch {
	case o.Limit < 0 || o.Limit > maxCount:
		return fmt.Errorf("ratelimit: BucketOptions.Limit is %d, want 0 to 2^53", o.Limit)
	case o.Name != "" && !validName(o.Name):
		return fmt.Errorf("ratelimit: BucketOptions.Name is %q, want %s", o.Name, nameRule)
	case o.Span%o.Interval != 0:
		return fmt.Errorf("ratelimit: BucketOptions.Span is %v, want a multiple of Interval %v", o.Span, o.Interval)
	case buckets < minBuckets || buckets > maxBuckets:
		return fmt.Errorf("ratelimit: BucketOptions.Span is %v, want %d to %d times Interval %v", o.Span, minBuckets, maxBuckets, o.Interval)
	case o.Per > o.Span:
		return fmt.Errorf("ratelimit: BucketOptions.Per is %v, want at most Span %v", o.Per, o.Span)
	case o.Per < o.Interval:
		return fmt.Errorf("ratelimit: BucketOptions.Per is %v, want at least Interval %v", o.Per, o.Interval)
	case o.Expiry < o.Span:
		return fmt.Errorf("ratelimit: BucketOptions.Expiry is %v, want at least Span %v", o.Expiry, o.Span)
	}
	return nil
}

func (o BucketOptions) checkUnits() error {
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"Interval", o.Interval}, {"Span", o.Span}, {"Per", o.Per}, {"Expiry", o.Expiry}} {
		switch {
		case f.value <= 0 || f.value > maxTime:
			return fmt.Errorf("ratelimit: BucketOptions.%s is %v, want more than 0 and at most %v", f.name, f.value, maxTime)
		case f.value%time.Microsecond != 0:
			return fmt.Errorf("ratelimit: BucketOptions.%s is %v, want whole microseconds", f.name, f.value)
		}
	}
	return nil
}
