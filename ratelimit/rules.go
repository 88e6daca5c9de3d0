package ratelimit

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// MaxDuration is the longest duration of an option or a rule, 100 years, in this package and
// those below it. Longer ones are errors, as sums with times could overflow.
const MaxDuration time.Duration = option.MaxDuration

// OptionError reports an option that a constructor or a rule refuses.
type OptionError = option.Error

// PerSecond allows limit units in any second; see [Per].
func PerSecond(limit int64) Rule { return newPer("PerSecond", limit, time.Second) }

// PerMinute allows limit units in any minute; see [Per].
func PerMinute(limit int64) Rule { return newPer("PerMinute", limit, time.Minute) }

// PerHour allows limit units in any hour; see [Per].
func PerHour(limit int64) Rule { return newPer("PerHour", limit, time.Hour) }

// PerDay allows limit units in any 24 hours; see [Per].
func PerDay(limit int64) Rule { return newPer("PerDay", limit, 24*time.Hour) }

// Per allows limit units, at least 1, in any interval d, of whole microseconds. It counts in
// buckets of d/20, as [Buckets] describes: the limit is never exceeded, and a unit leaves the
// count with its bucket, up to 5 % of d later than it would have to. So a denial of 5 per
// minute may ask to wait for up to 63 seconds.
func Per(limit int64, d time.Duration) Rule { return newPer("Per", limit, d) }

func newPer(constructor string, limit int64, d time.Duration) Rule {
	if err := ratioError(constructor, limit, d); err != "" {
		return invalidRule(err)
	}
	return newBuckets(constructor, BucketOptions{Limit: limit, Per: d})
}

// FixedWindow allows limit units in a window, which begins with the first charge and ends a
// per later, whatever comes in between: a denied take prolongs nothing. At the edge of two
// windows nearly twice the limit can pass within a short time; the other rules don't have
// that. A key takes two numbers.
//
// Its units are counted over the window, so the interval of a count is zero or per, which is in
// whole microseconds.
func FixedWindow(limit int64, per time.Duration) Rule { return newWindow("FixedWindow", limit, per) }

// Throttle allows one unit, and then none for d: a [FixedWindow] of one unit. Calls that come
// too early are denied and change nothing.
func Throttle(d time.Duration) Rule { return newWindow("Throttle", 1, d) }

func newWindow(constructor string, limit int64, per time.Duration) Rule {
	d := per.Microseconds()
	return newRule(layout.Layout{Algorithm: layout.Window, Limit: limit, Per: d, Span: d, Expiry: d},
		ratioError(constructor, limit, per))
}

// SlidingLog allows limit units in any per, exactly: a unit counts from when it was charged
// until a per later. It takes room for every charge, those of one microsecond together: in
// memory, 8 to 15 bytes.
//
// Any interval up to per can be counted, at the cost of a binary search. A refund costs
// as much as there are later charges. Durations are in whole microseconds. See
// [Rule.WithStream] for another encoding in Redis; [Rule.WithoutLimit] makes it a log that
// only counts, and remembers without a bound of its own.
func SlidingLog(limit int64, per time.Duration) Rule {
	d := per.Microseconds()
	return newRule(layout.Layout{Algorithm: layout.Log, Limit: limit, Per: d, Span: d, Expiry: d},
		ratioError("SlidingLog", limit, per))
}

// GCRA keeps an even rate, by the generic cell rate algorithm of ITU-T I.371, which decides as a
// token bucket does: of at most
// limit units, limit come back evenly in each per. [Rule.WithBurst] allows more or fewer at
// once. It is exact for every rate. A key takes two numbers; its units cannot be counted
// ([ErrNoCount]), and a charge can be refunded only as long as nothing else was charged.
//
// An Add charges more than the burst, too: up to a thousand times the largest burst (2^53 /
// per × 1000 units, for a day 104 million), and at most 2^53, not counting what has come
// back. Beyond that it charges nothing and returns [ErrOverflow]. Above the largest burst, a
// store may round by 1,024/limit microseconds.
//
// The per is in whole microseconds, and (burst + 1) × per at most 2^53 of them.
func GCRA(limit int64, per time.Duration) Rule {
	return newRule(layout.Layout{Algorithm: layout.GCRA, Limit: limit, Per: per.Microseconds()},
		ratioError("GCRA", limit, per))
}

// maxCount is the largest count and limit: what a double, and so Lua, holds exactly.
const maxCount = 1 << 53

// The checks return what is wrong, beginning with the field, or "".

func ratioError(constructor string, limit int64, per time.Duration) string {
	return cmp.Or(limitError(constructor+".Limit", limit, 1), durationError(constructor+".Per", per))
}

func limitError(field string, limit, least int64) string {
	if limit < least || limit > maxCount {
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

// burstError checks a GCRA's burst: as per microseconds for each unit, it has to leave
// room for one unit more below 2^53.
func burstError(field string, burst, per int64) string {
	if most := maxCount/per - 1; burst < 1 || burst > most {
		return fmt.Sprintf("%s is %d, want 1 to %d, so that (burst + 1) × per in microseconds is at most 2^53", field, burst, most)
	}
	return ""
}
