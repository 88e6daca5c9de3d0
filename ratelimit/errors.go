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

// Errors of an op or of a store. Test for them with errors.Is.
var (
	// ErrStore means that the store could not answer. Its response is a 503.
	ErrStore error = &condition{http.StatusServiceUnavailable, "ratelimit: store unavailable", "Rate limit unavailable",
		"The rate limit could not be checked. Try again later."}
	// ErrNoKey means that a request has no key to be counted by. Its response is a 400.
	ErrNoKey error = &condition{http.StatusBadRequest, "ratelimit: request has no key", "Caller not identified",
		"The request has no value by which the rate limit could identify the caller."}
	// ErrTooLarge means that waiting cannot help, because n is above the limit, above a GCRA's burst, or more than
	// can be counted at all (then the error is also ErrOverflow). Its response is a 400.
	ErrTooLarge error = &condition{http.StatusBadRequest, "ratelimit: n is above the limit", "Request too large",
		"The request costs more than the whole quota."}

	// ErrOp means that an op is malformed. The text names the wrong part.
	ErrOp = errors.New("ratelimit: invalid op")
	// ErrInterval means that an interval cannot be counted, because it is longer than the rule's span, or because a
	// fixed window counts only its Per.
	ErrInterval = errors.New("ratelimit: interval cannot be counted")
	// ErrNoCount means that a GCRA was asked for a count.
	ErrNoCount = errors.New("ratelimit: rule cannot count")
	// ErrNoLimit means that a take or a peek used a rule that only counts.
	ErrNoLimit = errors.New("ratelimit: rule has no limit")
	// ErrOverflow means that a count would exceed 2^53, or what [GCRA] allows to add.
	ErrOverflow = errors.New("ratelimit: count overflow")
	// ErrKeyType means that the counter's key in the store holds data of another kind. It is wrapped together with
	// ErrStore.
	ErrKeyType = errors.New("ratelimit: the key holds something else")
	// ErrNoRoom means that a store has no room for a counter. The counters of the op's key alone exceed the store's
	// bound, or the store is full and denies new counters.
	ErrNoRoom = errors.New("ratelimit: no room for the counter")
)

// IsOpError reports whether err is about an op and not about the store, which means that the store works but refuses
// this op. Such an error never wraps ErrStore.
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

// Problem returns the response for the error.
func (c *condition) Problem() (status int, members map[string]any) {
	return c.status, map[string]any{"title": c.title, "detail": c.detail}
}

// DeniedError is a denial as an error, for code that returns errors and not results. Its response is a 429.
type DeniedError struct {
	// Policies lists the names of the policies that denied. If a policy has several rules, its name is followed by a
	// dot and the name of the rule. The list is empty if a [Limiter] denied.
	Policies []string
	// Limit is the limit that denied, or the one with the longest wait if there are several.
	Limit int64
	// RetryAfter is the time until the same take would be allowed, if there are no other charges.
	RetryAfter time.Duration

	hideNames bool // the response does not contain Policies
}

// Error returns a text with the names of the policies and the time to wait.
func (e *DeniedError) Error() string {
	by := ""
	if len(e.Policies) > 0 {
		by = " by " + strings.Join(e.Policies, ", ")
	}
	return fmt.Sprintf("ratelimit: denied%s: limit %d, retry after %v", by, e.Limit, e.RetryAfter)
}

// RetrySeconds returns RetryAfter in whole seconds, rounded up, at least 1: the value of Retry-After.
func (e *DeniedError) RetrySeconds() int64 { return problem.RetrySeconds(e.RetryAfter) }

// Problem returns the 429 response for the denial.
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
	if len(e.Policies) > 0 && !e.hideNames {
		members["violated-policies"] = e.Policies
	}
	return http.StatusTooManyRequests, members
}
