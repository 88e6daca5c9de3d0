package ratelimit

import (
	"net/http"
	"strconv"
	"time"
)

// maxInteger is the largest integer of a structured field.
const maxInteger = 999_999_999_999_999

// The field names as net/http keeps them in a map.
const (
	policyField = "Ratelimit-Policy"
	limitField  = "Ratelimit"
)

// writeHeader adds the policy to the header fields of draft-ietf-httpapi-ratelimit-headers-10.
func (p *limited) writeHeader(h http.Header, results []Result, sum Result) {
	for i, r := range results {
		addMember(h, policyField, p.policyItems[i])
		addMember(h, limitField, p.limitItem(p.Rules[i], r))
	}
	if p.XHeaders {
		writeXHeaders(h, sum)
	}
}

// policyItem returns an item such as "ip";q=100;w=60. The name needs no escapes, see
// validName. A window that isn't whole seconds cannot be told and is left out.
func (p Policy) policyItem(r Rule) string {
	item := `"` + p.quota(r) + `";q=` + integer(r.limit)
	if r.Per()%time.Second == 0 {
		item += ";w=" + integer(int64(r.Per()/time.Second))
	}
	return item
}

// limitItem returns an item such as "ip";r=0;t=18: what remains, and for how long that
// is all that there is. If it isn't enough, that is the time to wait.
func (p *limited) limitItem(r Rule, res Result) string {
	wait := res.RetryAfter
	if wait == 0 {
		wait = res.ResetAfter
	}
	return `"` + p.quota(r) + `";r=` + integer(res.Remaining) + ";t=" + integer(ceilSeconds(wait))
}

// addMember adds a member to a list, as one line: some clients read only the first.
// The name is in its canonical form, which spares every request two conversions.
func addMember(h http.Header, name, item string) {
	if lines := h[name]; len(lines) > 0 && lines[0] != "" {
		item = lines[0] + ", " + item
	}
	h[name] = []string{item}
}

// writeXHeaders leaves those of another policy that has less left.
func writeXHeaders(h http.Header, sum Result) {
	if had, err := strconv.ParseInt(h.Get("X-RateLimit-Remaining"), 10, 64); err == nil && had <= sum.Remaining {
		return
	}
	h.Set("X-RateLimit-Limit", integer(sum.Limit))
	h.Set("X-RateLimit-Remaining", integer(sum.Remaining))
	h.Set("X-RateLimit-Reset", integer(ceilSeconds(sum.ResetAfter)))
}

// writeRetryAfter leaves a later time that is there: all policies have to allow.
func writeRetryAfter(h http.Header, denied *DeniedError) {
	seconds := denied.RetrySeconds()
	if had, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64); err == nil && had >= seconds {
		return
	}
	h.Set("Retry-After", integer(seconds))
}

func integer(n int64) string { return strconv.FormatInt(min(n, maxInteger), 10) }
