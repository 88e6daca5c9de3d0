package proxy

import (
	"net/http"
	"strconv"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// told is what a client can learn of a limit, in the terms of the seed's API.
type told struct {
	MaxRequests int64 `json:"max_requests"`
	Requests    int64 `json:"requests"`
	Remaining   int64 `json:"remaining"`
	TTL         int64 `json:"ttl"`   // seconds until the full quota is there
	Reset       int64 `json:"reset"` // that moment, in Unix seconds
	// Beyond is how many requests were denied since the last that wasn't.
	Beyond int64 `json:"beyond,omitempty"`
	// Source is "local" of what this process alone has counted, because Redis doesn't answer.
	Source string `json:"source,omitempty"`
}

// untold is what a client can learn of a limit that nobody knows the state of.
type untold struct {
	MaxRequests int64  `json:"max_requests"`
	Source      string `json:"source"` // "unavailable"
}

// tell says what a result of a limit comes to. A quota that nobody has touched ends after
// the limit's time.
func tell(res ratelimit.Result, limit ratelimit.Rule, now time.Time) told {
	reset := res.ResetAfter
	if reset == 0 {
		reset = limit.Per()
	}
	ttl := int64((reset + time.Second - 1) / time.Second)
	source := ""
	if res.Source == ratelimit.FromFailover {
		source = local
	}
	return told{
		Source:      source,
		MaxRequests: limit.Burst(),
		Requests:    max(0, limit.Burst()-res.Remaining),
		Remaining:   res.Remaining,
		TTL:         ttl,
		Reset:       now.Add(reset).Unix(),
	}
}

// seedFields are the response's fields, as net/http keeps them in a map.
var seedFields = [...]string{
	"X-Ratelimit-Maxrequests", "X-Ratelimit-Requests", "X-Ratelimit-Remaining", "X-Ratelimit-Ttl", "X-Ratelimit-Reset",
}

// write sets the fields.
func (t told) write(h http.Header) {
	var room [5 * 20]byte
	var ends [len(seedFields)]int
	digits := room[:0]
	for i, v := range [...]int64{t.MaxRequests, t.Requests, t.Remaining, t.TTL, t.Reset} {
		digits = strconv.AppendInt(digits, v, 10)
		ends[i] = len(digits)
	}
	text, begin := string(digits), 0
	values := new([len(seedFields)]string)
	for i, end := range ends {
		values[i] = text[begin:end]
		h[seedFields[i]] = values[i : i+1 : i+1]
		begin = end
	}
}

// hasSeedFields tells whether an upstream has some of its own, which are left as they are:
// a mixture of both would mean nothing.
func hasSeedFields(h http.Header) bool {
	for _, name := range seedFields {
		if len(h[name]) > 0 {
			return true
		}
	}
	return false
}

// speaking returns that of a rule's limits for the request which a result is of.
func (g *generation) speaking(r *rule, req *http.Request, res ratelimit.Result) ratelimit.Rule {
	limits := r.policy.Rules
	if len(r.tiers) > 0 {
		if chosen := r.limitsFor(req, g.clients.text(req.Context(), req)); chosen != nil {
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
