package algorithms

import (
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// What all subjects are to enforce: 100 units in 60 s.
const (
	Limit = 100
	Per   = time.Minute
)

// subject is what is measured: a rule, or several that decide together.
type subject struct {
	name  string
	rules []ratelimit.Rule
}

// allSubjects returns the subjects of the document, in its order.
func allSubjects() []subject {
	even := Per / Limit
	return []subject{
		{"Buckets, 1 s", []ratelimit.Rule{bucketRule(Limit, Per, time.Second, 2*Per)}},
		{"Buckets, 5 s", []ratelimit.Rule{bucketRule(Limit, Per, 5*time.Second, 2*Per)}},
		{"Buckets, 20 s", []ratelimit.Rule{bucketRule(Limit, Per, 20*time.Second, 2*Per)}},
		{"SlidingLog", []ratelimit.Rule{slidingLogRule(Limit, Per)}},
		{"FixedWindow", []ratelimit.Rule{fixedWindowRule(Limit, Per)}},
		{"GCRA, burst 100", []ratelimit.Rule{gcraRule(Limit, Per, Limit)}},
		{"GCRA, burst 25", []ratelimit.Rule{gcraRule(Limit, Per, 25)}},
		{"Throttle(600ms)", []ratelimit.Rule{ratelimit.Throttle(even)}},
		{"GCRA 10/s and FixedWindow", []ratelimit.Rule{gcraRule(10, time.Second, 10), fixedWindowRule(Limit, Per)}},
	}
}

func bucketRule(limit int64, per, interval, span time.Duration) ratelimit.Rule {
	return ratelimit.Buckets(ratelimit.BucketOptions{Limit: limit, Per: per, Interval: interval, Span: span})
}

func slidingLogRule(limit int64, per time.Duration) ratelimit.Rule {
	return ratelimit.SlidingLog(limit, per)
}

func fixedWindowRule(limit int64, per time.Duration) ratelimit.Rule {
	return ratelimit.FixedWindow(limit, per)
}

func gcraRule(limit int64, per time.Duration, burst int64) ratelimit.Rule {
	return ratelimit.GCRA(limit, per).WithBurst(burst)
}

// theoreticalMax returns the most that theory lets through in a window of length w, whole
// microseconds of at least one. What decides together lets through no more than each.
func (s subject) theoreticalMax(w time.Duration) int64 {
	var each []int64
	for _, r := range s.rules {
		each = append(each, ruleMax(r, w.Microseconds()))
	}
	return slices.Min(each)
}

// exactMax returns the most that "at most Limit in any Per" lets through in a window of length w.
func exactMax(w time.Duration) int64 { return Limit * ceilDiv(w.Microseconds(), Per.Microseconds()) }

func ruleMax(r ratelimit.Rule, w int64) int64 {
	limit, per := r.Limit(), r.Per().Microseconds()
	switch r.Algorithm() {
	case "buckets":
		// Of two moments in w, the later is at most touched-1 buckets after the earlier.
		// Any back+1 buckets in a row hold at most the limit.
		interval := r.Interval().Microseconds()
		touched, back := ceilDiv(w-1, interval)+1, ceilDiv(per, interval)
		return limit * ceilDiv(touched, back+1)
	case "log":
		return limit * ceilDiv(w, per)
	case "window":
		// Either the first window's beginning is in w, or it isn't, and then neither is
		// the unit that began it.
		return max(limit*ceilDiv(w, per), limit*(ceilDiv(w-1, per)+1)-1)
	default:
		return r.Burst() + (w-1)*limit/per
	}
}

// ceilDiv divides what isn't negative, by what is positive.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
