package ratecheck

import (
	"math"
	"time"
)

// Rule is what a limiter has to keep. Its functions don't decrease.
type Rule struct {
	// Most returns the most units that may be admitted in an interval of length w, its
	// ends included.
	Most func(w time.Duration) int64
	// Denies returns how many units admitted in the last w, and asked for now, a denial
	// needs one more of: one is in order if there is a w with more. [math.MaxInt64] says
	// that what happened so long ago is no reason.
	Denies func(w time.Duration) int64
	// Windows, unless nil, checks what Most can't say, of the takes that are allowed, in
	// the order of Received.
	Windows func(allowed []Take) error
}

// Buckets is the rule of a limit over per that is counted in whole buckets, those that
// per touches: what is admitted counts for at least per, rounded up to buckets, and for
// less than one bucket longer.
func Buckets(limit int64, per, bucket time.Duration) Rule {
	whole := (per + bucket - 1) / bucket * bucket
	return Rule{
		Most:   func(w time.Duration) int64 { return limit * max(1, int64((w+whole-1)/whole)) },
		Denies: until(whole+bucket, limit),
	}
}

// SlidingLog is the rule of a limit over every interval that is shorter than per.
func SlidingLog(limit int64, per time.Duration) Rule {
	return Rule{
		Most:   func(w time.Duration) int64 { return limit * int64(w/per+1) },
		Denies: until(per, limit),
	}
}

// FixedWindow is the rule of a limit for windows of length per that begin with what is
// admitted first.
func FixedWindow(limit int64, per time.Duration) Rule {
	return Rule{
		Most:    func(w time.Duration) int64 { return limit * int64(w/per+2) },
		Denies:  until(per, limit),
		Windows: windows(limit, per.Microseconds()),
	}
}

// GCRA is the rule of a bucket that holds burst units and is filled with limit over per.
func GCRA(limit int64, per time.Duration, burst int64) Rule {
	most := func(w time.Duration) int64 {
		return burst + int64(math.Floor(float64(limit)*float64(w)/float64(per)))
	}
	return Rule{Most: most, Denies: most}
}

// Leased is the rule of a limiter some of whose units are held by its callers, each for at
// most a life: of those that were admitted, up to so many may not be spent, and the others
// count for up to a life longer. It admits no more than r.
func Leased(r Rule, life time.Duration, held int64) Rule {
	denies := r.Denies
	r.Denies = func(w time.Duration) int64 {
		most := denies(max(0, w-life))
		if most == math.MaxInt64 {
			return most
		}
		return max(0, most-held)
	}
	return r
}

// In is the rule of a limiter whose windows are known: they end at these times, in
// microseconds.
func (r Rule) In(limit int64, per time.Duration, ends []int64) Rule {
	r.Windows = known(limit, per.Microseconds(), ends)
	return r
}

// until returns limit for less than d.
func until(d time.Duration, limit int64) func(time.Duration) int64 {
	return func(w time.Duration) int64 {
		if w < d {
			return limit
		}
		return math.MaxInt64
	}
}
