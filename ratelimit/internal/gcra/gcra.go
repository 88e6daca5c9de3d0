// Package gcra is the arithmetic of a GCRA, which the stores share.
//
// The level is in 1/Limit µs, so that all numbers are integers: a unit raises it by Per, it falls by Limit in every
// microsecond, and Burst × Per is full. The level is also the number of units used, in 1/Per, so it keeps its meaning
// if the limit changes. Rounding the time of a unit to microseconds instead would lose 17 % of a rate of 600,000 in a
// second.
//
// Burst × Per is at most 2^53, so a float64 holds it exactly, too. After an add, a level may be a thousand times as
// high.
package gcra

import (
	"math"
	"math/bits"

	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// MaxUnits returns the maximum number of units that a level can hold if each unit raises it by per.
func MaxUnits(per int64) int64 {
	return min(layout.MaxCount, layout.MaxCount/per*1000)
}

// Rule holds the parameters of a GCRA. Per is in microseconds.
type Rule struct{ Limit, Burst, Per int64 }

// Level returns the level at now after it was set to level at the time at. Times are in microseconds. A level does not
// change before that time.
func (r Rule) Level(at, level, now int64) int64 {
	if now <= at {
		return level
	}
	high, fallen := bits.Mul64(uint64(now-at), uint64(r.Limit))
	if high != 0 || fallen >= uint64(level) {
		return 0
	}
	return level - int64(fallen)
}

// Check returns how many units pass at a level, the microseconds until n do, and those until the level is 0. The level
// begins to fall in behind microseconds.
func (r Rule) Check(level, behind, n int64) (remaining, retry, reset int64) {
	free := r.Burst*r.Per - level // below 0 after an Add, or under a lower limit
	if free > 0 {
		remaining = Quotient(free, r.Per)
	}
	if n > remaining {
		retry = behind + Quotient(n*r.Per-free+r.Limit-1, r.Limit)
	}
	if level > 0 {
		reset = behind + Quotient(level+r.Limit-1, r.Limit)
	}
	return remaining, retry, reset
}

// Quotient divides integers of up to 64 bits that are not negative. It divides small integers in half the time. The
// result is at most half of the largest int64, so that a sum with a time does not overflow.
func Quotient(a, b int64) int64 {
	if uint64(a|b)>>32 == 0 {
		return int64(uint32(a) / uint32(b))
	}
	return int64(min(uint64(a)/uint64(b), math.MaxInt64/2))
}
