package proxy

import (
	"net/http"
	"slices"
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
}

// tell says what a result comes to. A quota that nobody has touched ends after per.
func tell(res ratelimit.Result, per time.Duration, now time.Time) told {
	reset := res.ResetAfter
	if reset == 0 {
		reset = per
	}
	ttl := int64((reset + time.Second - 1) / time.Second)
	return told{
		MaxRequests: res.Limit,
		Requests:    max(0, res.Limit-res.Remaining),
		Remaining:   res.Remaining,
		TTL:         ttl,
		Reset:       now.Add(reset).Unix(),
	}
}

// seedFields are the response's fields, as net/http keeps them in a map.
var seedFields = []string{
	"X-Ratelimit-Maxrequests", "X-Ratelimit-Requests", "X-Ratelimit-Remaining", "X-Ratelimit-Ttl", "X-Ratelimit-Reset",
}

// write sets the fields.
func (t told) write(h http.Header) {
	values := make([]string, len(seedFields))
	for i, v := range []int64{t.MaxRequests, t.Requests, t.Remaining, t.TTL, t.Reset} {
		values[i] = strconv.FormatInt(v, 10)
		h[seedFields[i]] = values[i : i+1 : i+1]
	}
}

// yield takes the fields away if the upstream has some of its own: a mixture of both would
// mean nothing.
func yield(h, upstream http.Header) {
	if !slices.ContainsFunc(seedFields, func(name string) bool { return len(upstream[name]) > 0 }) {
		return
	}
	for _, name := range seedFields {
		delete(h, name)
	}
}
