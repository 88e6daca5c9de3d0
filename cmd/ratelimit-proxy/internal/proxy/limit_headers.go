package proxy

import (
	"net/http"
	"strconv"
	"time"

	"github.com/lazyreq/lazyreq/internal/problem"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// status is the state of a limit for one key. The status API and the X-RateLimit headers show it.
type status struct {
	MaxRequests int64 `json:"max_requests"`
	Requests    int64 `json:"requests"`
	Remaining   int64 `json:"remaining"`
	TTL         int64 `json:"ttl"`   // in seconds, until the full quota is available
	Reset       int64 `json:"reset"` // time when the full quota is available, in Unix seconds
	// Denials is the number of denied requests since the latest allowed one.
	Denials int64 `json:"denials,omitempty"`
}

// newStatus returns the status of a limit with a given result. For an unused quota, TTL is the time of a window
// that begins now, or the rest of the calendar's window.
func newStatus(res ratelimit.Result, limit ratelimit.Rule, now time.Time) status {
	reset := res.ResetAfter
	if reset == 0 {
		begin := now.UnixMicro()
		reset = limit.Layout().Wait(limit.Layout().WindowEnd(begin) - begin)
	}
	return status{
		MaxRequests: limit.Burst(),
		Requests:    max(0, limit.Burst()-res.Remaining),
		Remaining:   res.Remaining,
		TTL:         problem.Seconds(reset),
		Reset:       now.Add(reset).Unix(),
	}
}

// statusHeaders lists the X-RateLimit response headers, in the spelling of net/http.
var statusHeaders = [...]string{
	"X-Ratelimit-Maxrequests", "X-Ratelimit-Requests", "X-Ratelimit-Remaining", "X-Ratelimit-Ttl", "X-Ratelimit-Reset",
}

// writeHeaders sets the X-RateLimit headers in h.
func (s *status) writeHeaders(h http.Header) {
	for i, v := range [...]int64{s.MaxRequests, s.Requests, s.Remaining, s.TTL, s.Reset} {
		h[statusHeaders[i]] = []string{strconv.FormatInt(v, 10)}
	}
}

// hasStatusHeaders reports whether h, the header of an upstream's response, has any of statusHeaders. The proxy then
// sends none of them, because a mixture of both would be meaningless.
func hasStatusHeaders(h http.Header) bool {
	for _, name := range statusHeaders {
		if len(h[name]) > 0 {
			return true
		}
	}
	return false
}
