package ratelimit

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/internal/problem"
)

// Conditions of an op or of a store; test for them with errors.Is.
var (
	// ErrStore means that the store could not answer. It becomes a 503.
	ErrStore error = &condition{http.StatusServiceUnavailable, "ratelimit: store unavailable", "Rate limit unavailable",
		"The rate limit could not be checked. Try again later."}
	// ErrNoKey means that a request has nothing to be counted by. It becomes a 400.
	ErrNoKey error = &condition{http.StatusBadRequest, "ratelimit: request has no key", "Caller not identified",
		"The request has no value by which the rate limit could identify the caller."}
	// ErrTooLarge means that waiting cannot help: n is above the limit, or a GCRA's burst, or more than can be counted
	// at all (then it is also ErrOverflow). It becomes a 400.
	ErrTooLarge error = &condition{http.StatusBadRequest, "ratelimit: n is above the limit", "Request too large",
		"The request costs more than the whole quota."}

	// ErrOp means that an op is malformed; the text names the part.
	ErrOp = errors.New("ratelimit: invalid op")
	// ErrInterval means a count over more than the rule's span, or of a fixed window over any interval but its Per.
	ErrInterval = errors.New("ratelimit: interval cannot be counted")
	// ErrNoCount means that a GCRA was asked for a count.
	ErrNoCount = errors.New("ratelimit: rule cannot count")
	// ErrNoLimit means a take or peek of a rule that only counts.
	ErrNoLimit = errors.New("ratelimit: rule has no limit")
	// ErrOverflow means that a count would exceed 2^53, or what [GCRA] allows to add.
	ErrOverflow = errors.New("ratelimit: count overflow")
	// ErrKeyType comes with ErrStore: the counter's key in the store holds data of another kind.
	ErrKeyType = errors.New("ratelimit: the key holds something else")
	// ErrNoRoom means that a store's bound leaves no room for a counter: the counters of the op's key alone are
	// larger, or the store is full and denies new ones.
	ErrNoRoom = errors.New("ratelimit: no room for the counter")
)

// IsOpError reports whether err is about an op and not about the store: the store works, and refuses this op. Such an
// error never comes with ErrStore.
func IsOpError(err error) bool {
	conditions := [...]error{ErrOp, ErrTooLarge, ErrInterval, ErrNoCount, ErrNoLimit, ErrOverflow, ErrNoRoom}
	return slices.ContainsFunc(conditions[:], func(c error) bool { return errors.Is(err, c) })
}

// condition is a sentinel error with an HTTP status.
type condition struct {
	status              int
	text, title, detail string
}

func (c *condition) Error() string { return c.text }

// Problem returns the response to the error.
func (c *condition) Problem() (status int, members map[string]any) {
	return c.status, map[string]any{"title": c.title, "detail": c.detail}
}

// DeniedError is a denial as an error, for code that returns errors rather than results. It becomes a 429.
type DeniedError struct {
	// Policies are the names of the policies that denied. If a policy has several rules, the name of the rule follows
	// after a dot. It is empty if a [Limiter] denied.
	Policies []string
	// Limit is the limit that denied, or the one with the longest wait if there are several.
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

// RetrySeconds returns RetryAfter in whole seconds, rounded up, at least 1: the value of Retry-After.
func (e *DeniedError) RetrySeconds() int64 { return problem.RetrySeconds(e.RetryAfter) }

// Problem returns the 429 response to the denial.
func (e *DeniedError) Problem() (status int, members map[string]any) {
	unit, seconds := "seconds", e.RetrySeconds()
	if seconds == 1 {
		unit = "second"
	}
	members = map[string]any{
		"type":   "https://iana.org/assignments/http-problem-types#quota-exceeded",
		"title":  "Quota exceeded",
		"detail": fmt.Sprintf("Too many requests. Try again in %d %s.", min(seconds, maxInteger), unit),
	}
	if len(e.Policies) > 0 {
		members["violated-policies"] = e.Policies
	}
	return http.StatusTooManyRequests, members
}
