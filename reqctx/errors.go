package reqctx

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

var (
	// ErrNoRequest says that a context carries no request.
	ErrNoRequest = errors.New("reqctx: the context carries no request")
	// ErrNoProperty says that the request's registry has no such property.
	ErrNoProperty = errors.New("reqctx: no such property")
	// ErrNoValue says that a property without a Resolve function was not set.
	ErrNoValue = errors.New("reqctx: property was not set and has nothing to resolve it")
	// ErrType says that a property was set by name to a value of another type.
	ErrType = errors.New("reqctx: value of the wrong type")
	// ErrCommitted says that the response's header has gone out, so that a
	// property can no longer be set.
	ErrCommitted = errors.New("reqctx: the response header is already committed")
	// ErrFinished says that the request is over.
	ErrFinished = errors.New("reqctx: the request is finished")
)

// TimeoutError says that a property took longer than its Timeout. It is a
// [context.DeadlineExceeded] and is never kept: the next Get tries again.
type TimeoutError struct {
	Name  string
	After time.Duration
}

// Error names the property and its timeout.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("reqctx: property %q took longer than %v", e.Name, e.After)
}

// Unwrap returns [context.DeadlineExceeded].
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// Problem makes it a 503 response.
func (e *TimeoutError) Problem() (status int, members map[string]any) {
	return http.StatusServiceUnavailable, nil
}

// named says which property err is about.
func named(err error, name string) error {
	return fmt.Errorf("%w: %q", err, name)
}
