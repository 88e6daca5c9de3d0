package inspect

import (
	"math/bits"
	"time"
)

// A histogram's buckets have 8 steps for each power of two, from 128 ns to about 34 s, so
// that a quantile is off by at most 6 %.
const (
	unitBits = 7 // a unit is 128 ns
	steps    = 8
	buckets  = 26 * steps
)

// histogram counts durations. The zero value is empty.
type histogram [buckets]uint32

func (h *histogram) add(d time.Duration) { h[bucketOf(d)]++ }

func (h *histogram) merge(other *histogram) {
	for i, n := range other {
		h[i] += n
	}
}

// quantile returns the duration that a share q of all counted ones do not exceed, 0 if there
// are none.
func (h *histogram) quantile(q float64) time.Duration {
	total := uint64(0)
	for _, n := range h {
		total += uint64(n)
	}
	rank := uint64(q * float64(total))
	for i, n := range h {
		if uint64(n) > rank {
			return (lowerBound(i) + lowerBound(i+1)) / 2
		}
		rank -= uint64(n)
	}
	return 0
}

func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0)) >> unitBits
	shift := max(bits.Len64(v)-4, 0) // leaves 4 bits, of which the first is 1
	return min(shift*steps+int(v>>shift), buckets-1)
}

func lowerBound(i int) time.Duration {
	if i < 2*steps {
		return time.Duration(i) << unitBits
	}
	shift := i/steps - 1
	return time.Duration(i-shift*steps) << (shift + unitBits)
}
