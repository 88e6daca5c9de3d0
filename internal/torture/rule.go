package torture

import (
	"math"
	"time"
)

// Rule is the rule of a limiter. The functions most and denies do not decrease with w.
type Rule struct {
	// most returns the maximum number of units that may be admitted in an interval of length w, including its ends.
	most func(w time.Duration) int64
	// A denial is right if, for some w, the units that were admitted in the last w, together with the requested
	// units, are more than denies(w). [math.MaxInt64] means that takes of that age do not justify a denial.
	denies func(w time.Duration) int64
	// windows and known may be nil. They check what most cannot express, for allowed takes in the order of Received.
	windows func(allowed []Take) error // only for runs in which no take failed
	known   func(allowed []Take) error // for windows whose ends are known
}

// Buckets returns the rule of a limiter that counts in buckets and allows limit units in per. An admitted unit counts
// for at least per, rounded up to a multiple of bucket. It counts for less than one bucket more than that.
func Buckets(limit int64, per, bucket time.Duration) Rule {
	whole := (per + bucket - 1) / bucket * bucket
	return Rule{
		most:   func(w time.Duration) int64 { return limit * max(1, int64((w+whole-1)/whole)) },
		denies: limitBefore(whole+bucket, limit),
	}
}

// SlidingLog is the rule of a limit over every interval that is shorter than per.
func SlidingLog(limit int64, per time.Duration) Rule {
	return Rule{
		most:   func(w time.Duration) int64 { return limit * int64(w/per+1) },
		denies: limitBefore(per, limit),
	}
}

// FixedWindow is the rule of a limit for windows of length per that begin with an admitted take.
func FixedWindow(limit int64, per time.Duration) Rule {
	return Rule{
		most:    func(w time.Duration) int64 { return limit * int64(w/per+2) },
		denies:  limitBefore(per, limit),
		windows: checkFixedWindows(limit, per.Microseconds()),
	}
}

// GCRA is the rule of a bucket of burst units that is filled with limit units over per.
func GCRA(limit int64, per time.Duration, burst int64) Rule {
	most := func(w time.Duration) int64 {
		return burst + int64(math.Floor(float64(limit)*float64(w)/float64(per)))
	}
	return Rule{most: most, denies: most}
}

// Prepaid is the rule of a limiter whose callers take units for at most a lifetime in advance: up to held admitted
// units may be unspent, and the others count for up to a lifetime longer. It admits no more than r.
func Prepaid(r Rule, lifetime time.Duration, held int64) Rule {
	denies := r.denies
	r.denies = func(w time.Duration) int64 {
		most := denies(max(0, w-lifetime))
		if most == math.MaxInt64 {
			return most
		}
		return max(0, most-held)
	}
	return r
}

// WithWindowEnds is r for a limiter whose windows end at these known times, in microseconds.
func (r Rule) WithWindowEnds(limit int64, per time.Duration, ends []int64) Rule {
	r.windows, r.known = nil, checkKnownWindows(limit, per.Microseconds(), ends)
	return r
}

// limitBefore returns limit for less than d.
func limitBefore(d time.Duration, limit int64) func(time.Duration) int64 {
	return func(w time.Duration) int64 {
		if w < d {
			return limit
		}
		return math.MaxInt64
	}
}
