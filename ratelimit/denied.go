package ratelimit

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// DeniedError is a denial as an error, for code that returns errors rather than results.
// It becomes a 429.
type DeniedError struct {
	// Policies are the names of the policies that denied; none if a bare rule did.
	Policies []string
	// Limit is the limit that was hit, of several the one that lasts longest.
	Limit int64
	// RetryAfter is how long until the same take passes if nobody else charges.
	RetryAfter time.Duration
}

// Error names the policies and says how long to wait.
func (e *DeniedError) Error() string {
	by := ""
	if len(e.Policies) > 0 {
		by = " by " + strings.Join(e.Policies, ", ")
	}
	return fmt.Sprintf("ratelimit: denied%s: limit %d, retry after %v", by, e.Limit, e.RetryAfter)
}

// RetrySeconds returns RetryAfter in whole seconds, rounded up, at least 1: the value of
// a Retry-After header.
func (e *DeniedError) RetrySeconds() int64 { return max(1, ceilSeconds(e.RetryAfter)) }

// Problem returns the 429 response that the denial stands for.
func (e *DeniedError) Problem() (status int, members map[string]any) {
	seconds := e.RetrySeconds()
	detail := "Too many requests. Try again in " + integer(seconds) + " seconds."
	if seconds == 1 {
		detail = "Too many requests. Try again in 1 second."
	}
	members = map[string]any{
		"type":   "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"title":  "Quota exceeded",
		"detail": detail,
	}
	if len(e.Policies) > 0 {
		members["violated-policies"] = e.Policies
	}
	return http.StatusTooManyRequests, members
}

func ceilSeconds(d time.Duration) int64 { return ceilDiv(int64(d), int64(time.Second)) }
