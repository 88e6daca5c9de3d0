package inspect

import (
	"math/bits"
	"time"
)

// windowSeconds is the period of the strip at the top of the page.
const windowSeconds = 60

// second counts the requests that ended in one second.
type second struct {
	counts
	unix int64
	took histogram
}

// counts holds the numbers of requests and store calls in a period.
type counts struct {
	Requests    uint32 `json:"requests"`
	Failed      uint32 `json:"failed"`
	Denied      uint32 `json:"denied"`
	StoreCalls  uint32 `json:"storeCalls"`
	StoreErrors uint32 `json:"storeErrors"`
	Failovers   uint32 `json:"failovers"` // decisions without the store, because it had failed
}

func (c *counts) add(other counts) {
	c.Requests += other.Requests
	c.Failed += other.Failed
	c.Denied += other.Denied
	c.StoreCalls += other.StoreCalls
	c.StoreErrors += other.StoreErrors
	c.Failovers += other.Failovers
}

// window contains the last seconds.
type window [windowSeconds]second

// secondAt returns the entry for the second that contains t. If the entry still belongs to an older second, secondAt
// empties it.
func (w *window) secondAt(t time.Time) *second {
	unix := t.Unix()
	s := &w[unix%windowSeconds]
	if s.unix != unix {
		*s = second{unix: unix}
	}
	return s
}

// strip is the summary of a window.
type strip struct {
	PerSecond float64 `json:"perSecond"` // over the last 10 complete seconds
	counts
	P50     float64  `json:"p50"` // in milliseconds, as P99
	P99     float64  `json:"p99"`
	History []uint32 `json:"history"` // requests of each complete second, the oldest first
}

// summary adds up the seconds of the window, including the second that is not over. Rates use only complete seconds.
func (w *window) summary(now time.Time) strip {
	const recent = 10
	out := strip{History: make([]uint32, windowSeconds-1)}
	var took histogram
	lastTen := uint32(0)
	for i := range w {
		s := &w[i]
		age := now.Unix() - s.unix
		if age < 0 || age >= windowSeconds {
			continue
		}
		out.add(s.counts)
		took.merge(&s.took)
		if age > 0 {
			out.History[windowSeconds-1-age] = s.Requests
		}
		if age > 0 && age <= recent {
			lastTen += s.Requests
		}
	}
	out.PerSecond = float64(lastTen) / recent
	out.P50, out.P99 = millis(took.quantile(.5)), millis(took.quantile(.99))
	return out
}

func millis(d time.Duration) float64 { return float64(d.Round(100)) / 1e6 }

// A histogram has 8 buckets for each power of two, from 128 ns to about 34 s. The error of a quantile is at most 6 %.
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

// quantile returns the duration that a share q of all durations do not exceed. It returns 0 for an empty histogram.
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
	shift := max(bits.Len64(v)-4, 0) // leaves the 4 highest bits, beginning with a 1
	return min(shift*steps+int(v>>shift), buckets-1)
}

func lowerBound(i int) time.Duration {
	if i < 2*steps {
		return time.Duration(i) << unitBits
	}
	shift := i/steps - 1
	return time.Duration(i-shift*steps) << (shift + unitBits)
}
