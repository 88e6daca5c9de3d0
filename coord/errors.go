package coord

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lazyreq/lazyreq/internal/problem"
)

// The errors with an HTTP status in parentheses have a method Problem. Package server uses it for the response.
var (
	// ErrInvalid (400) means that an argument is out of range. The text of the error names the argument.
	ErrInvalid error = &condition{"coord: invalid argument", http.StatusBadRequest, ""}
	// ErrStore (503) means that the store failed. Unless the error also wraps redisstore.ErrNotSent, the operation
	// may have been done.
	ErrStore error = &condition{"coord: store unavailable", http.StatusServiceUnavailable, ""}

	// ErrExists (409) means that a token with this id was issued before and has not been forgotten.
	ErrExists error = &condition{"coord: the token exists", http.StatusConflict, "This token has already been issued."}
	// ErrUnknown (404) means that a token was never issued or is forgotten.
	ErrUnknown error = &condition{"coord: unknown token", http.StatusNotFound, "There is no such token."}
	// ErrUsed (409) means that a token was used before.
	ErrUsed error = &condition{"coord: the token is used", http.StatusConflict, "This token has already been used."}
	// ErrExpired (410) means that a token has expired unused.
	ErrExpired error = &condition{"coord: the token has expired", http.StatusGone, "This token has expired."}
	// ErrRevoked (410) means that a token was revoked before it was used.
	ErrRevoked error = &condition{"coord: the token is revoked", http.StatusGone, "This token has been revoked."}

	// ErrHeld is the reason of a [DeniedError]: the lease has a holder.
	ErrHeld = errors.New("coord: the lease is held")
	// ErrTooSoon is the reason of a [DeniedError]: the lease is free, but MinInterval has not passed.
	ErrTooSoon = errors.New("coord: the last lease began too recently")
	// ErrEnded means that a lease has reached its deadline.
	ErrEnded = errors.New("coord: the lease has ended")
	// ErrLost means that the store has forgotten the lease or given it to another holder.
	ErrLost = errors.New("coord: the lease is lost")
	// ErrReleased means that the holder has released the lease.
	ErrReleased = errors.New("coord: the lease was released")
	// ErrMaxLifetime means that a lease cannot be extended beyond its maximum lifetime.
	ErrMaxLifetime = errors.New("coord: the lease has its maximum lifetime")
)

// condition is a sentinel error with an HTTP status.
type condition struct {
	text   string
	status int
	detail string // of the response, for clients
}

func (c *condition) Error() string { return c.text }

// Problem returns the response for the error.
func (c *condition) Problem() (status int, members map[string]any) {
	if c.detail == "" {
		return c.status, nil
	}
	return c.status, map[string]any{"detail": c.detail}
}

func invalidArgument(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// DeniedError means that a lease was not granted.
type DeniedError struct {
	// Reason is ErrHeld or ErrTooSoon.
	Reason error
	// RetryAfter is the time until the lease is free if its holder neither renews nor releases it.
	RetryAfter time.Duration
	// Soonest is the time until the lease is free if its holder releases it now. It is the rest of MinInterval.
	Soonest time.Duration
	// Holder is the name of the lease's holder. It is empty with ErrTooSoon.
	Holder string
}

// Error returns the reason, the holder's name and RetryAfter.
func (e *DeniedError) Error() string {
	by := ""
	if e.Holder != "" {
		by = " by " + e.Holder
	}
	return fmt.Sprintf("%v%s: retry after %v", e.Reason, by, e.RetryAfter)
}

// Unwrap returns Reason.
func (e *DeniedError) Unwrap() error { return e.Reason }

// RetrySeconds returns the value of a Retry-After header: RetryAfter in whole seconds, rounded up, at least 1.
func (e *DeniedError) RetrySeconds() int64 { return problem.RetrySeconds(e.RetryAfter) }

// Problem returns the response for the denial: 429 for ErrTooSoon, 409 for ErrHeld. It does not name the holder.
func (e *DeniedError) Problem() (status int, members map[string]any) {
	if errors.Is(e.Reason, ErrTooSoon) {
		return http.StatusTooManyRequests, map[string]any{
			"detail": fmt.Sprintf("The previous one began too recently. Try again in %d s.", e.RetrySeconds()),
		}
	}
	return http.StatusConflict, map[string]any{"detail": "This operation is already in progress."}
}
