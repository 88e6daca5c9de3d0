package proxy

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
	"github.com/lazyreq/lazyreq/server"
)

// rule is a [config.Rule] with everything that is needed to apply it.
type rule struct {
	config.Rule
	key    config.Key
	policy *ratelimit.Policy // shared by all generations; see Proxy.policyFor
	limits []ratelimit.Rule
	tiers  []tier
	allow  *acl
	deny   *acl
	sendsX bool // the rule can be described in X-RateLimit headers

	counters *ruleCounters
	logged   atomic.Int64 // time of the latest log line about a shadow denial, in Unix seconds
}

type tier struct {
	match  config.Match
	keys   *acl // values of the key; nil if the tier is for all keys
	limits []ratelimit.Rule
}

// newRule returns a rule for a checked configuration, and sets the fields of the rule's policy p.
func newRule(c config.Rule, by *clients, counters *ruleCounters, p *ratelimit.Policy) *rule {
	key, _ := config.ParseKey(c.Key)
	r := &rule{Rule: c, key: key, policy: p, limits: limitRules(c.Limits), counters: counters,
		allow: newACL(c.Allow, key, false), deny: newACL(c.Deny, key, true),
		sendsX: c.ResponseHeaders == config.XRateLimit || c.ResponseHeaders == config.Both}
	p.Key, p.Cost, p.Rules, p.Headers = keyFunc(key, by.key), costFunc(c.Cost), r.limits, ratelimit.HeadersDraft10
	p.Fallback, p.RulesFor, p.Settle = nil, nil, nil
	if c.ResponseHeaders == config.XRateLimit || c.ResponseHeaders == config.None {
		p.Headers = ratelimit.HeadersNone // the proxy has X-RateLimit headers of its own
	}
	if c.ChargeIf != nil {
		p.Settle = func(status int) bool { return slices.Contains(c.ChargeIf.Status, status) }
	}
	if c.Missing == config.Address {
		p.Fallback = by.key
	}
	for _, t := range c.Tiers {
		r.tiers = append(r.tiers, tier{t.Match, tierKeys(t, key), limitRules(t.Limits)})
	}
	if len(r.tiers) > 0 {
		p.RulesFor = func(ctx context.Context, req *http.Request) ([]ratelimit.Rule, error) {
			return r.tierLimits(req, by.address(ctx, req)), nil
		}
	}
	return r
}

// tierKeys returns the keys of a tier, or nil if the tier is for all keys.
func tierKeys(t config.Tier, key config.Key) *acl {
	if len(t.Keys) == 0 {
		return nil
	}
	l := &acl{part: key[0], values: map[string]bool{}}
	for _, text := range t.Keys {
		value, _ := key.Value(text) // the configuration was checked
		l.values[value] = true
	}
	return l
}

func limitRules(limits []config.Limit) (out []ratelimit.Rule) {
	for _, l := range limits {
		r, _ := l.Rule() // the configuration was checked
		out = append(out, r)
	}
	return out
}

// tierLimits returns the limits of the first tier that applies to a request, or nil if no tier applies.
func (r *rule) tierLimits(req *http.Request, address netip.Addr) []ratelimit.Rule {
	path := cleanPath(req)
	for i := range r.tiers {
		t := &r.tiers[i]
		if (t.keys == nil || t.keys.allows(req, address)) && matches(&t.match, req, path) {
			return t.limits
		}
	}
	return nil
}

// resultLimit returns the limit that a request's result describes, if the rule has several.
func (r *rule) resultLimit(req *http.Request, by *clients, res ratelimit.Result) ratelimit.Rule {
	limits := r.limits
	if len(r.tiers) > 0 {
		if chosen := r.tierLimits(req, by.address(req.Context(), req)); chosen != nil {
			limits = chosen
		}
	}
	out := limits[0]
	for _, l := range limits[1:] {
		if l.Limit() == res.Limit && (out.Limit() != res.Limit || l.Per() > out.Per()) {
			out = l
		}
	}
	return out
}

// costFunc returns a function that returns the cost of a request, or nil if the cost is 1.
func costFunc(text string) func(context.Context, *http.Request) (int64, error) {
	cost, header, _ := config.ParseCost(text)
	if cost == 1 {
		return nil
	}
	return func(_ context.Context, r *http.Request) (int64, error) {
		if header == "" {
			return cost, nil
		}
		values := r.Header[header]
		if len(values) == 0 || len(values) == 1 && values[0] == "" {
			return 1, nil
		}
		n, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil || n < 1 || n > storage.MaxCount || len(values) > 1 { // if there are several values, the upstream may read any of them
			return 0, server.Errorf(http.StatusBadRequest, "The header %s must be one whole number above 0.", header)
		}
		return n, nil
	}
}
