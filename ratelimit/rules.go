package ratelimit

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// MaxDuration is the longest duration of an option or a rule, 100 years. Longer ones could overflow.
const MaxDuration time.Duration = option.MaxDuration

// OptionError is the error of an invalid option of a constructor or a rule.
type OptionError = option.Error

// PerSecond allows limit units in any second; see [Per].
func PerSecond(limit int64) Rule { return newPer("PerSecond", limit, time.Second) }

// PerMinute allows limit units in any minute; see [Per].
func PerMinute(limit int64) Rule { return newPer("PerMinute", limit, time.Minute) }

// PerHour allows limit units in any hour; see [Per].
func PerHour(limit int64) Rule { return newPer("PerHour", limit, time.Hour) }

// PerDay allows limit units in any 24 hours; see [Per].
func PerDay(limit int64) Rule { return newPer("PerDay", limit, 24*time.Hour) }

// Per allows limit units, at least 1, in any interval of length d, which is in whole microseconds. It counts in
// [Buckets] of length d/20. The limit is never exceeded, but a unit can leave the count late, by up to 5 % of d. A
// denial of 5 per minute may ask to wait for up to 63 seconds.
func Per(limit int64, d time.Duration) Rule { return newPer("Per", limit, d) }

func newPer(constructor string, limit int64, d time.Duration) Rule {
	if err := ratioError(constructor, limit, d); err != "" {
		return invalidRule(err)
	}
	return newBuckets(constructor, BucketOptions{Limit: limit, Per: d})
}

// FixedWindow allows limit units in a window, which begins with the first charge and has the length per, in whole
// microseconds. Around the end of a window, nearly twice the limit can pass within a short time. A counter consists
// of two numbers. It can only be counted over per.
func FixedWindow(limit int64, per time.Duration) Rule { return newWindow("FixedWindow", limit, per) }

// Throttle allows one unit, and then no unit for the time d. It is a [FixedWindow] with a limit of 1.
func Throttle(d time.Duration) Rule { return newWindow("Throttle", 1, d) }

func newWindow(constructor string, limit int64, per time.Duration) Rule {
	d := per.Microseconds()
	return newRule(layout.Layout{Algorithm: layout.Window, Limit: limit, Per: d, Span: d, Expiry: d},
		ratioError(constructor, limit, per))
}

// Period is a period of the calendar; see [Calendar].
type Period = layout.Period

// The periods. A week begins on Monday.
const (
	Day   = layout.Day
	Week  = layout.Week
	Month = layout.Month
)

// Calendar allows limit units in each day, week or month of a location. It is a [FixedWindow] that ends when the next
// period begins, by the store's clock. So a day of a change to daylight saving time is shorter or longer. Rules share a
// counter only if their locations have the same name. time.Local is invalid, because it differs between machines.
func Calendar(limit int64, period Period, loc *time.Location) Rule {
	err := limitError("Calendar.Limit", limit, 1)
	switch {
	case err != "":
	case period < Day || period > Month:
		err = fmt.Sprintf("Calendar.Period is %v, want Day, Week or Month", period)
	case loc == nil:
		err = "Calendar.Location is nil, want one such as time.UTC"
	case loc.String() == "" || loc.String() == "Local":
		err = fmt.Sprintf("Calendar.Location is %q, want one with the same name on all machines, such as time.UTC", loc)
	}
	if err != "" {
		return invalidRule(err)
	}
	d := period.Length().Microseconds()
	return newRule(layout.Layout{
		Algorithm: layout.Window, Period: period, Location: loc, Limit: limit, Per: d, Span: d,
		Expiry: d + layout.Day.Length().Microseconds(), // a location that changes its offset can have a longer period
	}, "")
}

// SlidingLog allows limit units in any per, exactly. It stores every charge, in memory in 8 to 15 bytes; charges of
// the same microsecond share an entry. It can count any interval up to per, with a binary search. A refund costs more
// if many charges came later. Durations are in whole microseconds. With [Rule.WithoutLimit] it only counts, and its
// size is not bounded.
func SlidingLog(limit int64, per time.Duration) Rule {
	d := per.Microseconds()
	return newRule(layout.Layout{Algorithm: layout.Log, Limit: limit, Per: d, Span: d, Expiry: d},
		ratioError("SlidingLog", limit, per))
}

// GCRA keeps an even rate with the generic cell rate algorithm of ITU-T I.371, which decides like a token bucket. The
// bucket holds limit units, or those of [Rule.WithBurst], and limit units come back evenly in each per, in whole
// microseconds. A counter consists of two numbers. Its units cannot be counted ([ErrNoCount]), and only the last
// charge can be refunded.
//
// An Add may exceed the burst, up to a thousand times the largest burst (2^53 / per × 1000 units, for a day 104
// million), and at most 2^53. Beyond that it charges nothing and returns [ErrOverflow]. Above the largest burst, a
// store may round by 1,024/limit microseconds.
func GCRA(limit int64, per time.Duration) Rule {
	return newRule(layout.Layout{Algorithm: layout.GCRA, Limit: limit, Per: per.Microseconds()},
		ratioError("GCRA", limit, per))
}

// The checks return an error text that begins with the field, or "".

func ratioError(constructor string, limit int64, per time.Duration) string {
	return cmp.Or(limitError(constructor+".Limit", limit, 1), durationError(constructor+".Per", per))
}

func limitError(field string, limit, least int64) string {
	if limit < least || limit > layout.MaxCount {
		return fmt.Sprintf("%s is %d, want %d to 2^53", field, limit, least)
	}
	return ""
}

func durationError(field string, d time.Duration) string {
	switch {
	case d%time.Microsecond != 0:
		return fmt.Sprintf("%s is %v, want whole microseconds", field, d)
	case d < time.Microsecond || d > MaxDuration:
		return fmt.Sprintf("%s is %v, want %v to %v", field, d, time.Microsecond, MaxDuration)
	}
	return ""
}

// burstError checks a GCRA's burst: (burst + 1) × per in microseconds is at most 2^53.
func burstError(field string, burst, per int64) string {
	if most := layout.MaxCount/per - 1; burst < 1 || burst > most {
		return fmt.Sprintf("%s is %d, want 1 to %d, so that (burst + 1) × per in microseconds is at most 2^53", field, burst, most)
	}
	return ""
}

// BucketOptions configures [Buckets]. Durations are in whole microseconds. Without a Per, the defaults are for
// counting over up to ten minutes.
type BucketOptions struct {
	// Limit is the maximum number of units in any Per. It is at most 2^53. The zero value means that the rule only
	// counts.
	Limit int64
	// Per is the interval to which the limit applies, from Interval to Span. The zero value means Span.
	Per time.Duration
	// Interval is the length of a bucket. Counted intervals are rounded up to whole buckets, and may be too long by
	// one more. The zero value means Per/20, or without a Per 5 s.
	Interval time.Duration
	// Span is the longest interval that can be counted: 3 to 65536 Intervals. A counter takes 4 to 5 bytes of memory
	// for each bucket, twice that if it holds more than 2^32 units, and 7 bytes in Redis. The zero value means Per, or
	// without a Per 600 s. With a Per, the zero value and a Span without an Interval are rounded up to whole buckets.
	Span time.Duration
	// Expiry is how long Redis keeps a counter after its last charge, at least Span. The zero value means Span + Interval,
	// or without a Per twice the Span. A store in memory may forget a counter once its units have left the Span.
	Expiry time.Duration
}

const (
	minBuckets = 3
	maxBuckets = 1 << 16
	perBuckets = 20 // in a Per, so that a unit leaves the count late by at most 5 %
)

// Buckets allows Limit units in any Per, counted in time buckets. It can count any interval up to the span, at the
// same cost. The count is never too low. It can be too high by the units of the bucket before the interval.
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

// check checks each option by itself. The names of fields get the prefix.
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

// checkTogether checks whether the options fit together.
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
