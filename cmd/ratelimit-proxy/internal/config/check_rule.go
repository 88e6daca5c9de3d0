package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/internal/netaddr"
	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// rules checks [Config.Rules].
func (k *checker) rules() {
	for i, r := range k.c.Rules {
		field := fmt.Sprintf("rules[%d]", i)
		if slices.ContainsFunc(k.c.Rules[:i], func(other Rule) bool { return other.Name == r.Name }) {
			k.addf(field+".name", "is also the name of another rule, %q", r.Name)
		}
		k.rule(&r, field)
		hides := func(other Rule) bool { return other.Last && other.Match.covers(r.Match) }
		if n := slices.IndexFunc(k.c.Rules[:i], hides); n >= 0 {
			k.addf(field, "is never used: rules[%d] is last and matches all its requests", n)
		}
	}
}

func (k *checker) rule(r *Rule, field string) {
	k.oneOf(field+".missing", r.Missing, Address, Reject, Skip)
	k.oneOf(field+".on_error", r.OnError, Open, Closed, Local)
	k.oneOf(field+".response_headers", r.ResponseHeaders, Draft10, XRateLimit, Both, None)
	if !option.ValidName(r.Name) {
		k.addf(field+".name", "is %q, want %s", r.Name, option.NameSyntax)
	}
	k.match(r.Match, field+".match")
	key, err := ParseKey(r.Key)
	k.add(field+".key", err)
	for _, p := range key {
		if p.Kind == "header" {
			k.header(field+".key", p.Name)
		}
	}
	cost, header, err := ParseCost(r.Cost)
	k.add(field+".cost", err)
	k.header(field+".cost", header)
	k.limits(r.Limit, r.Limits, cost, field)
	if c := r.ChargeIf; c != nil && (len(c.Status) == 0 || slices.Min(c.Status) < 200 || slices.Max(c.Status) > 599) {
		k.addf(field+".charge_if.status", "is %v, want statuses from 200 to 599, such as [401, 403]", c.Status)
	}
	if key != nil {
		k.list(r.Allow, key, field+".allow")
		k.list(r.Deny, key, field+".deny")
	}
	k.tiers(r, key, cost, field)
}

// tiers checks [Rule.Tiers]. key is nil if it is not valid.
func (k *checker) tiers(r *Rule, key Key, cost int64, field string) {
	for i, t := range r.Tiers {
		at := fmt.Sprintf("%s.tiers[%d]", field, i)
		k.match(t.Match, at+".match")
		k.limits(t.Limit, t.Limits, cost, at)
		hides := func(other Tier) bool { return len(other.Keys) == 0 && other.Match.covers(t.Match) }
		if n := slices.IndexFunc(r.Tiers[:i], hides); n >= 0 {
			k.addf(at, "is never used: %s.tiers[%d] matches all its requests", field, n)
		}
		inRule := func(method string) bool { return slices.Contains(r.Match.Methods, method) }
		if len(r.Match.Methods) > 0 && len(t.Match.Methods) > 0 && !slices.ContainsFunc(t.Match.Methods, inRule) {
			k.addf(at, "is never used: the rule doesn't match its methods")
		}
		for n, text := range t.Keys {
			at := fmt.Sprintf("%s.keys[%d]", at, n)
			hides := func(other Tier) bool { return slices.Contains(other.Keys, text) && other.Match.covers(t.Match) }
			if slices.ContainsFunc(r.Tiers[:i], hides) || slices.Contains(r.Deny, text) {
				k.addf(at, "%q is never used: deny or an earlier tier has it", text)
			}
			if key == nil {
				continue
			}
			if _, err := key.Value(text); err != nil {
				k.addf(at, "%q is not a value of the key: it %w", text, err)
			}
		}
	}
}

// limits checks the limits of a rule or a tier. A limit must not be smaller than the cost of a request.
func (k *checker) limits(short Rate, full []Limit, cost int64, field string) {
	switch {
	case short != (Rate{}) && len(full) > 0:
		k.addf(field+".limit", "is set, and so is limits: want one of them")
	case short == (Rate{}) && len(full) == 0:
		k.addf(field, "has no limit, want one such as limit: 10/60s")
	}
	taken := map[string]bool{}
	for i, l := range allLimits(short, full) {
		at := field + ".limit"
		if short == (Rate{}) {
			at = fmt.Sprintf("%s.limits[%d]", field, i)
		}
		r, err := l.Rule()
		switch {
		case err != nil:
			k.add(at, limitError(err))
			continue
		case taken[r.Name()]:
			k.addf(at, "has the same name as another, %q", r.Name())
		}
		taken[r.Name()] = true
		if cost > r.Burst() {
			k.addf(field, "has a limit of %d, and a request costs %d: none would ever pass", r.Burst(), cost)
		}
	}
}

// limitError returns an error of package ratelimit in which the field has its name in YAML.
func limitError(err error) error {
	if wrong, ok := errors.AsType[*option.Error](err); ok {
		_, field, _ := strings.Cut(wrong.Field, ".")
		return fmt.Errorf("%s %s", strings.ToLower(field), wrong.Reason)
	}
	return err
}

// list checks the entries of [Rule.Allow] and [Rule.Deny].
func (k *checker) list(entries []string, key Key, field string) {
	for i, e := range entries {
		network, notPrefix := netip.ParsePrefix(e)
		_, notAddress := netip.ParseAddr(e)
		k.network(network, fmt.Sprintf("%s[%d]", field, i))
		if notPrefix == nil || notAddress == nil && !strings.Contains(e, "/") { // a slash could be in a zone, as in fe80::1%eth0/64
			continue
		}
		_, err := key.Value(e)
		if err == nil && looksLikeAddress(e) {
			err = errors.New("looks like a mistyped address")
		}
		if err != nil {
			k.addf(fmt.Sprintf("%s[%d]", field, i), "%q is not an address, a network or a value of the key: it %w", e, err)
		}
	}
}

// network reports an error for the NAT64 network. The proxy treats a NAT64 address as the IPv4 address in it, so this
// network would contain all IPv4 addresses.
func (k *checker) network(p netip.Prefix, field string) {
	if p.Masked() == netaddr.NAT64 {
		k.addf(field, "%v is the network of all IPv4 addresses behind NAT64, which count as IPv4 addresses: want 0.0.0.0/0 for all of these", p)
	}
}

// looksLikeAddress reports whether text is probably a mistyped address or network, such as 10.0.0.256 or
// 2001:db8::/129.
func looksLikeAddress(text string) bool {
	address, _, isNetwork := strings.Cut(text, "/")
	_, err := netip.ParseAddr(address)
	return isNetwork && err == nil || strings.Count(text, ".") == 3 && strings.Trim(text, "0123456789./") == ""
}

// Rule returns the limit as a rule of package ratelimit.
func (l Limit) Rule() (ratelimit.Rule, error) {
	block, limit, per := l.Block, l.Rate.Limit, l.Rate.Per
	switch {
	case l.InFlight != 0 || l.Life != 0:
		return l.inFlightRule()
	case l.Rate == (Rate{}):
		return ratelimit.Rule{}, errors.New("has no rate, want one such as rate: 10/60s")
	case l.Burst != 0 && l.Algorithm != "gcra":
		return ratelimit.Rule{}, errors.New("has a burst, which only a gcra has")
	case l.Interval != 0 && l.Algorithm != "buckets":
		return ratelimit.Rule{}, errors.New("has an interval, which only buckets have")
	case l.Rate.Period != 0 && l.Algorithm != "" && l.Algorithm != "window":
		return ratelimit.Rule{}, fmt.Errorf("has a rate per %v, which only a window has", l.Rate.Period)
	}
	var r ratelimit.Rule
	switch l.Algorithm {
	case "throttle":
		if limit != 1 {
			return r, fmt.Errorf("is a throttle, whose rate must be 1, not %d, in a time", limit)
		}
		r = ratelimit.Throttle(per)
	case "", "window":
		r = l.Rate.window()
	case "gcra":
		if r = ratelimit.GCRA(limit, per); l.Burst != 0 {
			r = r.WithBurst(l.Burst)
		}
	case "log":
		r = ratelimit.SlidingLog(limit, per)
	case "stream":
		r = ratelimit.SlidingLog(limit, per).WithStream()
	case "buckets":
		r = ratelimit.Buckets(ratelimit.BucketOptions{Limit: limit, Per: per, Interval: l.Interval}).WithLimit(limit)
	default:
		return r, fmt.Errorf("has the unknown algorithm %q, want window, throttle, buckets, log, stream or gcra", l.Algorithm)
	}
	r = r.WithName(l.Name).WithBlock(block)
	return r, r.Err()
}

// inFlightRule returns a limit of requests in progress as a rule.
func (l Limit) inFlightRule() (ratelimit.Rule, error) {
	switch {
	case l.InFlight == 0:
		return ratelimit.Rule{}, errors.New("has a life, which only in_flight has")
	case l.InFlight < 1:
		return ratelimit.Rule{}, fmt.Errorf("has in_flight %d, want at least 1", l.InFlight)
	case l != Limit{Name: l.Name, Block: l.Block, InFlight: l.InFlight, Life: l.Life}:
		return ratelimit.Rule{}, errors.New("has in_flight, so it cannot have a rate, algorithm, burst or interval")
	}
	r := ratelimit.Concurrent(l.InFlight).WithName(l.Name).WithBlock(l.Block)
	if l.Life != 0 {
		r = r.WithLife(l.Life)
	}
	return r, r.Err()
}
