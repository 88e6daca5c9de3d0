package ratelimit

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// BucketOptions configure [Buckets]. Durations are in whole microseconds. With a Per, what is
// left zero is derived from it; without one, the defaults are for counting over up to ten
// minutes.
type BucketOptions struct {
	// Limit is the largest number of units in any Per, at most 2^53. The zero value means
	// no limit: the rule only counts.
	Limit int64
	// Per is the interval that the limit is over, from Interval to Span. The zero value
	// means Span.
	Per time.Duration
	// Interval is the length of a bucket. Counted intervals are rounded up to whole
	// buckets, and may be too long by one more. The zero value means Per/20, or without a Per
	// 5 s.
	Interval time.Duration
	// Span is the longest interval that can be counted: a multiple of Interval, at
	// least 3 and at most 65536 times as long. A counter takes 4 to 5 bytes of memory
	// for each bucket, twice that if it holds more than 2^32 units, and 7 bytes in Redis. The
	// zero value means Per, rounded up to a multiple of Interval, or without a Per 600 s. If
	// Interval is zero and Span is not, Span is rounded up in the same way.
	Span time.Duration
	// Expiry is how long a counter is kept after its last charge, at least Span. Whatever can
	// still be counted is kept in any case. The zero value means Span + Interval, or without a
	// Per twice the Span.
	Expiry time.Duration
}

const (
	minBuckets = 3
	maxBuckets = 1 << 16
	// perBuckets is the number of buckets in a Per: a unit leaves the count late by at most one
	// bucket, which is 5 % of it.
	perBuckets = 20
)

// Buckets allows Limit units in any Per, counted in time buckets. Any interval up to the span can
// be counted, at the same cost. The count is never less than the truth, and more by at most what
// one bucket before the interval holds.
func Buckets(o BucketOptions) Rule { return newBuckets("BucketOptions", o) }

func newBuckets(constructor string, o BucketOptions) Rule {
	prefix := constructor + "."
	if err := o.check(prefix); err != "" {
		return invalidRule(err)
	}
	o = o.withDefaults()
	if err := o.checkTogether(prefix); err != "" {
		return invalidRule(err)
	}
	return newRule(layout.Layout{
		Algorithm: layout.Buckets,
		Window:    int32((o.Per + o.Interval - 1) / o.Interval),
		Buckets:   int32(o.Span / o.Interval),
		Limit:     o.Limit,
		Per:       o.Per.Microseconds(),
		Interval:  o.Interval.Microseconds(),
		Span:      o.Span.Microseconds(),
		Expiry:    o.Expiry.Microseconds(),
	}, "")
}

func (o BucketOptions) withDefaults() BucketOptions {
	if o.Per == 0 {
		o.Interval = cmp.Or(o.Interval, 5*time.Second)
		o.Span = cmp.Or(o.Span, 600*time.Second)
		o.Expiry = cmp.Or(o.Expiry, min(2*o.Span, MaxDuration))
		o.Per = o.Span
		return o
	}
	derived := o.Interval == 0
	if derived {
		o.Interval = max(time.Microsecond, (o.Per / perBuckets).Truncate(time.Microsecond))
	}
	if o.Span == 0 || derived {
		o.Span = o.roundSpan(max(o.Span, o.Per))
	}
	o.Expiry = cmp.Or(o.Expiry, min(o.Span+o.Interval, MaxDuration))
	return o
}

// roundSpan returns d rounded up to a number of buckets that a counter can have.
func (o BucketOptions) roundSpan(d time.Duration) time.Duration {
	return max(minBuckets, (d+o.Interval-1)/o.Interval) * o.Interval
}

// check returns what is wrong with an option by itself, whose name it puts after prefix.
func (o BucketOptions) check(prefix string) string {
	err := limitError(prefix+"Limit", o.Limit, 0)
	for _, f := range [...]struct {
		name string
		d    time.Duration
	}{{"Per", o.Per}, {"Interval", o.Interval}, {"Span", o.Span}, {"Expiry", o.Expiry}} {
		if f.d != 0 {
			err = cmp.Or(err, durationError(prefix+f.name, f.d))
		}
	}
	return err
}

// checkTogether returns which option doesn't go with the others.
func (o BucketOptions) checkTogether(prefix string) string {
	switch buckets := o.Span / o.Interval; {
	case o.Span%o.Interval != 0:
		return fmt.Sprintf("%sSpan is %v, want a multiple of Interval %v", prefix, o.Span, o.Interval)
	case o.Span > MaxDuration:
		return fmt.Sprintf("%sSpan is %v, want at most %v", prefix, o.Span, MaxDuration)
	case buckets < minBuckets || buckets > maxBuckets:
		return fmt.Sprintf("%sSpan is %v, want %d to %d times Interval %v", prefix, o.Span, minBuckets, maxBuckets, o.Interval)
	case o.Per > o.Span:
		return fmt.Sprintf("%sPer is %v, want at most Span %v", prefix, o.Per, o.Span)
	case o.Per < o.Interval:
		return fmt.Sprintf("%sPer is %v, want at least Interval %v", prefix, o.Per, o.Interval)
	case o.Expiry < o.Span:
		return fmt.Sprintf("%sExpiry is %v, want at least Span %v", prefix, o.Expiry, o.Span)
	}
	return ""
}
