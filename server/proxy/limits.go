package proxy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// limitsOf makes the engine's rules of a limit in short and limits in full.
func limitsOf(short Rate, full []Limit, field string, f *faults) []ratelimit.Rule {
	var out []ratelimit.Rule
	if short != (Rate{}) {
		if len(full) > 0 {
			f.addf(field+".limit", "is set, and limits as well: want one of them")
		}
		full, field = []Limit{{Rate: short}}, field+".limit"
	} else if len(full) == 0 {
		f.addf(field, "has no limit, want one such as limit: 10/60s")
	}
	names := map[string]bool{}
	for i, l := range full {
		at := field
		if short == (Rate{}) {
			at = fmt.Sprintf("%s.limits[%d]", field, i)
		}
		r, err := l.rule()
		switch {
		case err != nil:
			f.add(at, errors.New(inYAML.Replace(err.Error())))
		case names[l.Name]:
			f.addf(at, "has the same name as another, %q", l.Name)
		}
		names[l.Name] = true
		out = append(out, r)
	}
	return out
}

// inYAML names the fields of package ratelimit as a configuration does.
var inYAML = strings.NewReplacer("ratelimit: ", "", "WindowOptions.", "", "BucketOptions.", "", "LogOptions.", "", "GCRAOptions.", "",
	"Name is", "name is", "Per is", "the rate's time is", "Span is", "the rate's time is", "Limit is", "the rate's number is",
	"Burst is", "burst is", "Interval is", "interval is", "times Interval", "times the interval",
	"Block.After is", "block.after is", "Block.For is", "block.for is")

// rule makes the engine's rule of a limit.
func (l *Limit) rule() (ratelimit.Rule, error) {
	block := ratelimit.Block{After: l.Block.After, For: l.Block.For}
	limit, per := l.Rate.Limit, l.Rate.Per
	switch {
	case l.Rate == (Rate{}):
		return ratelimit.Rule{}, errors.New("has no rate, want one such as rate: 10/60s")
	case l.Burst != 0 && l.Algorithm != "gcra":
		return ratelimit.Rule{}, errors.New("burst is set, which only a gcra has")
	case l.Interval != 0 && l.Algorithm != "buckets":
		return ratelimit.Rule{}, errors.New("interval is set, which only buckets have")
	}
	switch l.Algorithm {
	case "", "window":
		return ratelimit.FixedWindow(ratelimit.WindowOptions{Name: l.Name, Limit: limit, Per: per, Block: block})
	case "throttle":
		if limit != 1 {
			return ratelimit.Rule{}, fmt.Errorf("a throttle's rate is 1 in a time, not %d", limit)
		}
		return ratelimit.FixedWindow(ratelimit.WindowOptions{Name: l.Name, Limit: 1, Per: per, Block: block})
	case "gcra":
		return ratelimit.GCRA(ratelimit.GCRAOptions{Name: l.Name, Limit: limit, Per: per, Burst: l.Burst, Block: block})
	case "log":
		return ratelimit.SlidingLog(ratelimit.LogOptions{Name: l.Name, Limit: limit, Per: per, Block: block})
	case "stream":
		return ratelimit.SlidingLog(ratelimit.LogOptions{Name: l.Name, Limit: limit, Per: per, Encoding: ratelimit.Stream, Block: block})
	case "buckets":
		o := ratelimit.BucketOptions{Name: l.Name, Limit: limit, Per: per, Interval: l.Interval, Span: per, Block: block}
		if o.Interval == 0 {
			o.Interval = max(per/12, time.Microsecond)
		}
		o.Span = (per + o.Interval - 1) / o.Interval * o.Interval
		return ratelimit.Buckets(o)
	default:
		return ratelimit.Rule{}, fmt.Errorf("algorithm %q, want window, buckets, log, stream, gcra or throttle", l.Algorithm)
	}
}
