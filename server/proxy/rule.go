package proxy

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/internal/names"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
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

	first    bool // of all, whose limit a request has without a name
	counters *ruleCounters
	reported atomic.Int64 // the second in which a try was logged
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
	if !names.Valid(r.Name) {
		f.addf(field+".name", "is %q, want %s", r.Name, names.Rule)
	}
	var err error
	if out.key, err = newTemplate(r.Key, by.key); err != nil {
		f.add(field+".key", err)
		out.key = &template{}
	}
	p := &out.policy
	p.Name, p.Key = r.Name, out.key.key
	if r.Missing == byAddress {
		p.Fallback = by.key
	}
	p.Rules = limitsOf(r.Limit, r.Limits, field, f)
	var cost int64
	if p.Cost, cost, err = costOf(r.Cost); err != nil {
		f.add(field+".cost", err)
	}
	affordable(f, field, cost, p.Rules)
	out.allow, out.deny = newWho(r.Allow, out.key, field+".allow", f), newWho(r.Deny, out.key, field+".deny", f)
	for i, t := range r.Tiers {
		at := fmt.Sprintf("%s.tiers[%d]", field, i)
		limits := limitsOf(t.Limit, t.Limits, at, f)
		affordable(f, at, cost, limits)
		keys := keysOf(t.Keys, out.key, at+".keys", f)
		out.tiers = append(out.tiers, tier{newMatcher(t.Match, at+".match", f), keys, limits})
	}
	if len(out.tiers) > 0 {
		p.RulesFor = func(ctx context.Context, r *http.Request) ([]ratelimit.Rule, error) {
			return out.limitsFor(r, by.text(ctx, r)), nil
		}
	}
	return out
}

// of returns the rule's limit of a request.
func (r *rule) of(req *server.Request) *ratelimit.Limit {
	if r.first {
		return req.RateLimit()
	}
	return req.RateLimitFor(r.Name)
}

// keysOf returns values of a key as requests have them.
func keysOf(values []string, key *template, field string, f *faults) (out []string) {
	for i, v := range values {
		a, err := netip.ParseAddr(v)
		switch {
		case v == "":
			f.addf(fmt.Sprintf("%s[%d]", field, i), "is empty, which no key is")
		case key.isAddress() && err != nil:
			f.addf(fmt.Sprintf("%s[%d]", field, i), "%q is no address, which the rule counts by", v)
		case key.isAddress():
			v = text(a.Unmap().WithZone(""))
		case key.spelled(v) == "":
			f.addf(fmt.Sprintf("%s[%d]", field, i), "%q is no host, which the rule counts by", v)
		}
		out = append(out, key.spelled(v))
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
