package layer

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/internal/problem"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// UnavailableError means that the store failed and its rule's [Mode] is Closed, or that the op
// needs the store. It also is [ratelimit.ErrStore]: a middleware with FailOpen lets such
// requests through. A response for it is a 503.
type UnavailableError struct {
	// RetryAfter is the maximum time until the store is called again.
	RetryAfter time.Duration
	// Err is the failure of the store.
	Err error
}

// Error returns the failure and RetryAfter.
func (e *UnavailableError) Error() string {
	cause := strings.TrimPrefix(e.Err.Error(), ratelimit.ErrStore.Error()+": ")
	return fmt.Sprintf("%v: %s (retry after %v)", ratelimit.ErrStore, cause, e.RetryAfter)
}

// Unwrap returns ErrStore and Err.
func (e *UnavailableError) Unwrap() []error { return []error{ratelimit.ErrStore, e.Err} }

// RetrySeconds returns RetryAfter in whole seconds, rounded up, at least 1: the value of a
// Retry-After header.
func (e *UnavailableError) RetrySeconds() int64 { return problem.RetrySeconds(e.RetryAfter) }

// Problem returns the 503 response for the error.
func (e *UnavailableError) Problem() (status int, members map[string]any) {
	return http.StatusServiceUnavailable, map[string]any{
		"type":   "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
		"title":  "Temporary reduced capacity",
		"detail": "The rate limit cannot be checked at the moment. Try again later.",
	}
}
