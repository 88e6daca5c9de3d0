package config

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strings"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// match checks a [Match].
func (k *checker) match(m Match, field string) {
	for i, method := range m.Methods {
		if method == "" || method != strings.ToUpper(method) {
			k.addf(fmt.Sprintf("%s.methods[%d]", field, i), "%q is not a method, want one such as GET", method)
		}
	}
	for i, host := range m.Hosts {
		base := strings.TrimPrefix(host, "*.")
		_, ok := ParseHost(base)
		if !ok || strings.LastIndexByte(base, ':') > strings.LastIndexByte(base, ']') {
			k.addf(fmt.Sprintf("%s.hosts[%d]", field, i), "%q is not a host without a port, want one such as example.com or *.example.com", host)
		}
	}
	for i, p := range m.Paths {
		k.add(fmt.Sprintf("%s.paths[%d]", field, i), checkPattern(p))
	}
	for name := range m.Headers {
		if !isToken(name) {
			k.addf(field+".headers", "%q is not the name of a header", name)
		}
		k.header(field+".headers", name)
	}
}

// checkPattern checks a pattern of [Match.Paths].
func checkPattern(p string) error {
	switch clean := path.Clean(p); {
	case p == "" || p[0] != '/':
		return fmt.Errorf("%q is not a path pattern: it has to begin with /", p)
	case clean != p && clean+"/" != p:
		return fmt.Errorf("%q never matches: paths are matched in their shortest form, %q", p, clean)
	case strings.ContainsAny(p, `;\`):
		return fmt.Errorf("%q never matches: parameters of segments are removed, and a backslash is a slash", p)
	}
	for s := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSuffix(p, "/"), "/**"), "/") {
		if strings.Contains(s, "*") && s != "*" {
			return errors.New(`"*" must be a whole segment, and "**" the last one`)
		}
	}
	return nil
}

// limits checks the limits of a rule or a tier, and that a request can cost as much as it does.
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

// limitError returns an error of package ratelimit with the field's name in YAML.
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
		_, notPrefix := netip.ParsePrefix(e)
		_, notAddress := netip.ParseAddr(e)
		if notPrefix == nil || notAddress == nil {
			continue
		}
		// An IPv4 address with a typo isn't a value of the key.
		looksLikeAddress := strings.Count(e, ".") == 3 && strings.Trim(e, "0123456789./") == ""
		if looksLikeAddress || key.IsAddress() || key.Normalize(e) == "" {
			k.addf(fmt.Sprintf("%s[%d]", field, i), "%q is not an address, a network or a value of the key", e)
		}
	}
}

// keys checks [Tier.Keys].
func (k *checker) keys(values []string, key Key, field string) {
	for i, v := range values {
		_, err := netip.ParseAddr(v)
		switch at := fmt.Sprintf("%s[%d]", field, i); {
		case v == "":
			k.addf(at, "is empty, but no key is empty")
		case key.IsAddress() && err != nil:
			k.addf(at, "%q is not an address, and the rule counts by address", v)
		case key.Normalize(v) == "":
			k.addf(at, "%q is not a host, and the rule counts by host", v)
		}
	}
}

// Rule returns the rule of package ratelimit that the limit stands for.
func (l Limit) Rule() (ratelimit.Rule, error) {
	block, limit, per := l.Block, l.Rate.Limit, l.Rate.Per
	switch {
	case l.Rate == (Rate{}):
		return ratelimit.Rule{}, errors.New("has no rate, want one such as rate: 10/60s")
	case l.Burst != 0 && l.Algorithm != "gcra":
		return ratelimit.Rule{}, errors.New("has a burst, which only a gcra has")
	case l.Interval != 0 && l.Algorithm != "buckets":
		return ratelimit.Rule{}, errors.New("has an interval, which only buckets have")
	}
	var r ratelimit.Rule
	switch l.Algorithm {
	case "throttle":
		if limit != 1 {
			return r, fmt.Errorf("is a throttle, whose rate must be 1, not %d, in a time", limit)
		}
		r = ratelimit.Throttle(per)
	case "", "window":
		r = ratelimit.FixedWindow(limit, per)
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
