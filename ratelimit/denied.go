package ratelimit

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/internal/problem"
)

// DeniedError is a denial as an error, for code that returns errors rather than results.
// It becomes a 429.
type DeniedError struct {
	// Policies are the names of the policies that denied; none if a bare rule did.
	Policies []string
	// Limit is the limit that was hit, of several the one that lasts longest.
	Limit int64
	// RetryAfter is how long until the same take passes if there are no other charges.
	RetryAfter time.Duration
}

// Error names the policies and how long to wait.
func (e *DeniedError) Error() string {
	by := ""
	if len(e.Policies) > 0 {
		by = " by " + strings.Join(e.Policies, ", ")
	}
	return fmt.Sprintf("ratelimit: denied%s: limit %d, retry after %v", by, e.Limit, e.RetryAfter)
}

// RetrySeconds returns RetryAfter in whole seconds, rounded up, at least 1: the value of
// a Retry-After header.
func (e *DeniedError) RetrySeconds() int64 { return problem.RetrySeconds(e.RetryAfter) }

// What a denial is as a problem (RFC 9457).
const (
	deniedType  = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	deniedTitle = "Quota exceeded"
)

// Problem returns the 429 response that the denial stands for.
func (e *DeniedError) Problem() (status int, members map[string]any) {
	members = map[string]any{"type": deniedType, "title": deniedTitle, "detail": string(e.appendDetail(nil))}
	if len(e.Policies) > 0 {
		members["violated-policies"] = e.Policies
	}
	return http.StatusTooManyRequests, members
}

// AppendProblem appends the JSON object of the response that Problem returns, at a lower cost: an
// overloaded server answers mostly denials.
func (e *DeniedError) AppendProblem(b []byte) []byte {
	b = append(e.appendDetail(append(b, `{"detail":"`...)), `","status":429,"title":"`+deniedTitle+`","type":"`+deniedType+`"`...)
	if len(e.Policies) > 0 {
		b = problem.AppendStrings(append(b, `,"violated-policies":`...), e.Policies)
	}
	return append(b, '}')
}

func (e *DeniedError) appendDetail(b []byte) []byte {
	seconds := e.RetrySeconds()
	b = appendInteger(append(b, "Too many requests. Try again in "...), seconds)
	if seconds == 1 {
		return append(b, " second."...)
	}
	return append(b, " seconds."...)
}
