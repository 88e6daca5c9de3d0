// Package gcra has the arithmetic of a GCRA, which all stores use.
//
// A counter has a level, which is an integer. A unit raises the level by Per in microseconds, and the level falls by Limit
// in every microsecond. At the level Burst × Per, no unit passes. So the level divided by Per is the number of used units,
// whatever the limit is. A simpler counter would round the time for a unit to microseconds, but would lose 17 % of a limit
// of 600,000 per second.
//
// Burst × Per is at most 2^53, so a float64 in Lua represents it exactly. An add may raise the level to a thousand times as
// much.
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

// Level returns the level at the time now, if it was set to level at the time at. Times are in microseconds. If now is
// before at, Level returns level.
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

// Check returns the number of units that pass at a level. It also returns the times, in microseconds, until n units pass and
// until the level is 0. The level does not fall during the next behind microseconds.
func (r Rule) Check(level, behind, n int64) (remaining, retry, reset int64) {
	free := r.Burst*r.Per - level // negative after an Add beyond the burst, or if the burst was lowered
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

// Quotient divides two integers that are at least 0. It is faster for integers below 2^32. The result is at most half of
// the largest int64, so that its sum with a time does not overflow.
func Quotient(a, b int64) int64 {
	if uint64(a|b)>>32 == 0 {
		return int64(uint32(a) / uint32(b))
	}
	return int64(min(uint64(a)/uint64(b), math.MaxInt64/2))
}
