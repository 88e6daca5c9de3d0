package torture

import (
	"fmt"
	"slices"
)

// checkFixedWindows follows the windows of FixedWindow. It computes the interval in which each window must have begun,
// and so the takes that are certainly in it.
func checkFixedWindows(limit, per int64) func([]Take) error {
	return func(allowed []Take) error {
		if len(allowed) == 0 {
			return nil
		}
		end := allowed[0].Sent // takes that were sent later are not in an earlier window
		for _, t := range allowed {
			end = min(end, t.Sent)
		}
		for from, to := end, allowed[0].Received; ; {
			var units int64
			for _, t := range allowed {
				if t.Sent >= end && t.Received < from+per {
					units += t.N
				}
			}
			if units > limit {
				return fmt.Errorf("torture: %d units in a window from %d µs or later, where %d may pass", units, from, limit)
			}
			end = to + per
			var more bool
			if from, to, more = nextWindow(allowed, from+per, end); !more {
				return nil
			}
		}
	}
}

// nextWindow returns the interval in which the next window begins, after one that ends between early and late. It begins
// with a take that was received no earlier than early, and no later than the first take that was sent after late.
func nextWindow(allowed []Take, early, late int64) (from, to int64, more bool) {
	first := true
	for _, t := range allowed {
		if t.Received >= early && (first || t.Sent < from) {
			from, first = t.Sent, false
		}
		if t.Sent >= late && !more {
			to, more = t.Received, true
		}
	}
	return max(from, early), to, more
}

// checkKnownWindows checks takes in windows that end at known times. It ignores a take that may be in either of two
// windows.
func checkKnownWindows(limit, per int64, ends []int64) func([]Take) error {
	ends = slices.Compact(slices.Sorted(slices.Values(ends)))
	return func(allowed []Take) error {
		for _, end := range ends {
			var units int64
			for _, t := range allowed {
				if t.Sent >= end-per && t.Received < end {
					units += t.N
				}
			}
			if units > limit {
				return fmt.Errorf("torture: %d units in the window to %d µs, where %d may pass", units, end, limit)
			}
		}
		for _, t := range allowed {
			if !slices.ContainsFunc(ends, func(end int64) bool { return t.Received >= end-per && t.Sent < end }) {
				return fmt.Errorf("torture: in no window: %v", t)
			}
		}
		return nil
	}
}
