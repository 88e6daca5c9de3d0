package ratelimit

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/lazyreq/lazyreq/internal/problem"
)

// HeaderFields selects the header fields that describe a policy's limits to clients. After a denial, Retry-After and
// Cache-Control: no-store are always sent. The body of a 429 names the rules that denied the request only if the header
// has the fields of the draft, which contain the same names.
type HeaderFields uint8

const (
	// HeadersDraft10 sends RateLimit-Policy and RateLimit as in draft-ietf-httpapi-ratelimit-headers-10.
	HeadersDraft10 HeaderFields = iota
	// HeadersX sends X-RateLimit-Limit, -Remaining and -Reset (in seconds from now). If there are several rules, they
	// describe the rule with the fewest units left.
	HeadersX
	// HeadersDraft10AndX sends the fields of both.
	HeadersDraft10AndX
	// HeadersNone sends no fields. For example, a login should not reveal how many guesses it allows.
	HeadersNone
)

// includesDraft10 reports whether the fields of the draft are sent.
func (f HeaderFields) includesDraft10() bool { return f == HeadersDraft10 || f == HeadersDraft10AndX }

// writeHeader adds the result of a charge to the header.
func writeHeader(_ context.Context, c *charge, _ int, h http.Header) error {
	if c.policy.Headers != HeadersNone {
		c.writeLimits(h)
	}
	if !c.res.Allowed {
		writeDenial(h, c.res.RetrySeconds())
	}
	return nil
}

// writeLimits writes nothing for a policy without limits, and omits rules that are only tried out.
func (c *charge) writeLimits(h http.Header) {
	p, res := c.policy, &c.res
	if after := c.after.Load(); after != nil {
		res = after
	}
	limits := c.limitField(res)
	if limits == "" {
		return
	}
	if p.Headers.includesDraft10() {
		line := p.policyLine
		tried := slices.ContainsFunc(res.Each(), func(r Result) bool { return r.Source == FromShadow })
		if tried || !slices.Equal(c.rules, p.Rules) {
			line = string(p.appendPolicies(nil, c.rules, res))
		}
		addMembers(h, "Ratelimit-Policy", line)
		addMembers(h, "Ratelimit", limits)
	}
	if p.Headers != HeadersDraft10 {
		writeXHeaders(h, res)
	}
}

// appendPolicies appends a list such as "ip";q=100;w=60, "ip.burst";q=10;w=1. It omits the parameter w for a [Concurrent]
// and a [Calendar], and if the window is not a number of whole seconds. It omits rules that only count, and rules that res
// marks as only tried out. res may be nil.
func (p *Policy) appendPolicies(b []byte, rules []Rule, res *Result) []byte {
	for i, r := range rules {
		if r.Limit() == 0 || res != nil && res.ofRule(i).Source == FromShadow {
			continue
		}
		b = p.appendItem(b, r, len(rules) == 1)
		b = appendInteger(append(b, ";q="...), r.Limit())
		unit := p.Unit
		if r.concurrent() {
			unit = "concurrent-requests"
		}
		if unit != "" {
			b = append(append(append(b, `;qu="`...), unit...), '"')
		}
		if r.Per()%time.Second == 0 && !r.concurrent() && r.Layout().Period == 0 {
			b = appendInteger(append(b, ";w="...), int64(r.Per()/time.Second))
		}
	}
	return b
}

// limitField returns a list such as "ip";r=0;t=18. r is the number of remaining units, and t the seconds until more units,
// or enough units for the take, are available. A [Concurrent] has no t, because its units may come back at any moment.
func (t *terms) limitField(res *Result) string {
	b := make([]byte, 0, 96)
	for i, r := range t.rules {
		one := res.ofRule(i)
		if r.Limit() == 0 || one.Source == FromShadow {
			continue
		}
		wait := one.RetryAfter
		if wait == 0 {
			wait = one.ResetAfter
		}
		b = t.policy.appendItem(b, r, len(t.rules) == 1)
		b = appendInteger(append(b, ";r="...), min(one.Remaining, r.Limit())) // a GCRA's burst may be larger than its limit
		if !r.concurrent() {
			b = appendInteger(append(b, ";t="...), problem.Seconds(wait))
		}
	}
	return string(b)
}

// appendItem appends a comma, unless b is empty, and the rule's quotaName in quotes. The name needs no escapes.
func (p *Policy) appendItem(b []byte, r Rule, only bool) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	b = append(append(b, '"'), p.Name...)
	if !only || r.Layout().Named {
		b = append(append(b, '.'), r.Name()...)
	}
	return append(b, '"')
}

// addMembers adds members to a header field that is a list. It writes one line, because some clients read only the first
// line.
func addMembers(h http.Header, name, line string) {
	for _, had := range slices.Backward(h[name]) {
		if had != "" {
			line = had + ", " + line
		}
	}
	h[name] = []string{line}
}

// writeXHeaders sets the X-RateLimit fields, unless they already describe a rule that has as few or fewer units left.
func writeXHeaders(h http.Header, res *Result) {
	one := res.scarcest()
	remaining := min(one.Remaining, one.Limit)
	if had, err := strconv.ParseInt(h.Get("X-RateLimit-Remaining"), 10, 64); err == nil && had <= remaining {
		return
	}
	h.Set("X-RateLimit-Limit", sfInteger(one.Limit))
	h.Set("X-RateLimit-Remaining", sfInteger(remaining))
	h.Set("X-RateLimit-Reset", sfInteger(problem.Seconds(one.ResetAfter)))
}

// scarcest returns the result of the rule with the fewest units left. Of several such rules, it takes the one with the
// longest wait. Unlike r, which has the strictest numbers of all rules, it describes a single rule.
func (r *Result) scarcest() *Result {
	found := r
	for i, one := range r.Each() {
		if one.Source != FromShadow && one.Remaining == r.Remaining && (found == r || one.RetryAfter > found.RetryAfter) {
			found = r.ofRule(i)
		}
	}
	return found
}

// writeDenial forbids caching and sets Retry-After, unless another policy has set a later time.
func writeDenial(h http.Header, seconds int64) {
	h["Cache-Control"] = []string{"no-store"}
	if lines := h["Retry-After"]; len(lines) > 0 {
		if had, err := strconv.ParseInt(lines[0], 10, 64); err == nil && had >= seconds {
			return
		}
	}
	h["Retry-After"] = []string{sfInteger(seconds)}
}

func sfInteger(n int64) string { return string(appendInteger(nil, n)) }

// maxInteger is the largest integer of a structured field, which has at most 15 digits.
const maxInteger = 1e15 - 1

// appendInteger appends an integer of a structured field.
func appendInteger(b []byte, n int64) []byte { return strconv.AppendInt(b, min(n, maxInteger), 10) }
