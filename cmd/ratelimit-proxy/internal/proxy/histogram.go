package proxy

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// bounds are the upper bounds of the buckets in seconds. One more bucket has none.
var bounds = [...]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// histogram counts durations.
type histogram struct {
	counts [len(bounds) + 1]atomic.Uint64 // of each bucket, not cumulative
	sum    atomic.Int64                   // nanoseconds
}

func (h *histogram) observe(d time.Duration) {
	i, _ := slices.BinarySearch(bounds[:], d.Seconds())
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

// write writes the histogram in the text format of Prometheus.
func (h *histogram) write(w io.Writer, name, labels string) {
	comma, braced := "", ""
	if labels != "" {
		comma, braced = labels+",", "{"+labels+"}"
	}
	n := uint64(0)
	for i := range h.counts {
		le := "+Inf"
		if i < len(bounds) {
			le = strconv.FormatFloat(bounds[i], 'g', -1, 64)
		}
		n += h.counts[i].Load()
		fmt.Fprintf(w, "%s_bucket{%sle=%q} %d\n", name, comma, le, n)
	}
	fmt.Fprintf(w, "%s_sum%s %g\n%s_count%s %d\n", name, braced, time.Duration(h.sum.Load()).Seconds(), name, braced, n)
}
