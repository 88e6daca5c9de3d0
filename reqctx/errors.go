package reqctx

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

var (
	// ErrNoRequest means that a context carries no request.
	ErrNoRequest = errors.New("reqctx: the context carries no request")
	// ErrNoProperty means that the request's registry has no such property.
	ErrNoProperty = errors.New("reqctx: no such property")
	// ErrNoValue means that a property without a Resolve function was not set.
	ErrNoValue = errors.New("reqctx: the property was not set and has no Resolve function")
	// ErrType means that a property was set by name to a value of another type.
	ErrType = errors.New("reqctx: value of the wrong type")
	// ErrNoPrefetch means that a property does no I/O, so that there is nothing to prefetch.
	ErrNoPrefetch = errors.New("reqctx: the property does no I/O and cannot be prefetched")
	// ErrCommitted means that the response's header has gone out, after which no
	// property can be set.
	ErrCommitted = errors.New("reqctx: the response header is already committed")
	// ErrFinished means that the request is closing or finished.
	ErrFinished = errors.New("reqctx: the request is finished")
)

// TimeoutError is the error of a property that took longer than its Timeout. It wraps
// [context.DeadlineExceeded] and is never kept: the next Get tries again.
type TimeoutError struct {
	Name  string
	After time.Duration
}

// Error returns the property and its timeout.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("reqctx: property %q took longer than %v", e.Name, e.After)
}

// Unwrap returns [context.DeadlineExceeded].
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// Problem returns the status of the response to it, 503.
func (e *TimeoutError) Problem() (status int, members map[string]any) {
	return http.StatusServiceUnavailable, nil
}

// named adds the name of the property or task to err.
func named(err error, name string) error {
	return fmt.Errorf("%w: %q", err, name)
}
