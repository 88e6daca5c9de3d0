package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// What happens to a request that the key finds nothing in.
const (
	byAddress = "address"
	reject    = "reject"
	skip      = "skip"
)

// What happens when the store can't be asked.
const (
	open   = "open"
	closed = "closed"
	local  = "local"
)

// rule is a [Rule] that was checked.
type rule struct {
	Rule
	match  *matcher
	key    *template
	policy ratelimit.Policy
	tiers  []tier
	allow  *who
	deny   *who
}

type tier struct {
	match  *matcher
	keys   []string
	limits []ratelimit.Rule
}

func newRule(r Rule, field string, by *clients, f *faults) *rule {
	r.Key = cmp.Or(r.Key, "{header.Authorization}")
	r.Missing = cmp.Or(r.Missing, byAddress)
	r.OnError = cmp.Or(r.OnError, closed)
	out := &rule{Rule: r, match: newMatcher(r.Match, field+".match", f)}
	oneOf(f, field+".missing", r.Missing, byAddress, reject, skip)
	oneOf(f, field+".on_error", r.OnError, open, closed, local)
	if r.Replicas < 0 {
		f.addf(field+".replicas", "is %d, want at least 1", r.Replicas)
	}
	var err error
	if out.key, err = newTemplate(r.Key, by.key); err != nil {
		f.add(field+".key", err)
		return out
	}
	p := &out.policy
	p.Name, p.Key = r.Name, out.key.key
	if r.Missing == byAddress {
		p.Fallback = by.key
	}
	p.Rules = limitsOf(r.Limit, r.Limits, field, f)
	if p.Cost, err = costOf(r.Cost); err != nil {
		f.add(field+".cost", err)
	}
	out.allow, out.deny = newWho(r.Allow), newWho(r.Deny)
	for i, t := range r.Tiers {
		at := fmt.Sprintf("%s.tiers[%d]", field, i)
		out.tiers = append(out.tiers, tier{newMatcher(t.Match, at+".match", f), t.Keys, limitsOf(t.Limit, t.Limits, at, f)})
	}
	if len(out.tiers) > 0 {
		p.RulesFor = func(ctx context.Context, r *http.Request) ([]ratelimit.Rule, error) {
			return out.limitsFor(r, by.text(ctx, r)), nil
		}
	}
	return out
}

func oneOf(f *faults, field, got string, want ...string) {
	if !slices.Contains(want, got) {
		f.addf(field, "%q, want %s", got, strings.Join(want, ", "))
	}
}

// limitsFor returns the limits of a request's tier, nil if it has none.
func (r *rule) limitsFor(req *http.Request, address string) []ratelimit.Rule {
	at, value := cleaned(req), ""
	for i := range r.tiers {
		t := &r.tiers[i]
		if len(t.keys) > 0 {
			if value == "" {
				value = r.key.value(req, address)
			}
			if !slices.Contains(t.keys, value) {
				continue
			}
		}
		if t.match.matches(req, at) {
			return t.limits
		}
	}
	return nil
}

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
			f.add(at, errors.New(strings.TrimPrefix(err.Error(), "ratelimit: ")))
		case names[l.Name]:
			f.addf(at, "has the same name as another, %q", l.Name)
		}
		names[l.Name] = true
		out = append(out, r)
	}
	return out
}

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

// maxCost bounds what a client can say that its request costs.
const maxCost = 1 << 53

// costOf reads what a request costs; nil is 1.
func costOf(text string) (func(context.Context, *http.Request) (int64, error), error) {
	if text == "" {
		return nil, nil
	}
	if name, ok := strings.CutPrefix(text, "{header."); ok && strings.HasSuffix(name, "}") {
		name = textproto.CanonicalMIMEHeaderKey(strings.TrimSuffix(name, "}"))
		return func(_ context.Context, r *http.Request) (int64, error) {
			v := r.Header.Get(name)
			if v == "" {
				return 1, nil
			}
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < 1 || n > maxCost {
				return 0, &badCost{name, v}
			}
			return n, nil
		}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("%q, want a number above 0 or {header.NAME}", text)
	}
	return func(context.Context, *http.Request) (int64, error) { return n, nil }, nil
}

// badCost is a request header that should say what a request costs.
type badCost struct{ name, value string }

func (e *badCost) Error() string {
	return fmt.Sprintf("%s is %q, want a number above 0", e.name, e.value)
}

// Problem returns the response.
func (e *badCost) Problem() (int, map[string]any) {
	return http.StatusBadRequest, map[string]any{"detail": "The header " + e.name + " should be a number above 0."}
}
