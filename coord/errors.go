package coord

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/lazyreq/lazyreq/internal/problem"
)

// Answers and failures; test for them with errors.Is. Those with an HTTP meaning have a
// method Problem, by which package server makes a response of them.
var (
	// ErrInvalid means an argument out of range; the text says which. It becomes a 400.
	ErrInvalid error = &condition{text: "coord: invalid argument", status: http.StatusBadRequest}
	// ErrStore means that the store gave no answer, or refused. What was asked for may
	// have happened, unless redisstore.ErrNotSent comes with it. It becomes a 503.
	ErrStore error = &condition{text: "coord: store unavailable", status: http.StatusServiceUnavailable}

	// ErrExists means that a token with this id was issued before, and is not forgotten.
	// It becomes a 409.
	ErrExists error = &condition{text: "coord: the token exists", status: http.StatusConflict}
	// ErrUnknown means a token that was never issued, or is forgotten. It becomes a 404.
	ErrUnknown error = &condition{text: "coord: unknown token", status: http.StatusNotFound}
	// ErrUsed means a token that was used before. It becomes a 409.
	ErrUsed error = &condition{text: "coord: the token is used", status: http.StatusConflict}
	// ErrExpired means a token whose time is over. It becomes a 410.
	ErrExpired error = &condition{text: "coord: the token has expired", status: http.StatusGone}
	// ErrRevoked means a token that was revoked before it was used. It becomes a 410.
	ErrRevoked error = &condition{text: "coord: the token is revoked", status: http.StatusGone}

	// ErrHeld is a [DeniedError]: the lease has a holder.
	ErrHeld = errors.New("coord: the lease is held")
	// ErrTooSoon is a [DeniedError]: the lease is free, but MinInterval is not over.
	ErrTooSoon = errors.New("coord: the last lease began too recently")
	// ErrEnded means that a lease's time is over.
	ErrEnded = errors.New("coord: the lease has ended")
	// ErrLost means that the store has the lease no more, or has given it to another.
	ErrLost = errors.New("coord: the lease is lost")
	// ErrReleased means that its holder gave a lease back.
	ErrReleased = errors.New("coord: the lease was released")
	// ErrMaxLife means that a lease lasts as long as it may, and cannot be prolonged.
	ErrMaxLife = errors.New("coord: the lease has its maximal life")
)

// condition is a sentinel that has an HTTP meaning.
type condition struct {
	text   string
	status int
}

func (c *condition) Error() string { return c.text }

// Problem returns the response that the condition stands for.
func (c *condition) Problem() (status int, members map[string]any) { return c.status, nil }

// DeniedError says why a lease was not given, and how long to wait.
type DeniedError struct {
	// Reason is ErrHeld or ErrTooSoon.
	Reason error
	// RetryAfter is how long it takes until the lease can be had, if its holder neither
	// renews nor releases it.
	RetryAfter time.Duration
	// Soonest is how long it takes if the holder releases it now: the rest of
	// MinInterval.
	Soonest time.Duration
	// Holder is the holder of the lease; the zero Holder with ErrTooSoon.
	Holder Holder
}

// Error says who holds the lease, and how long to wait.
func (e *DeniedError) Error() string {
	by := ""
	if e.Holder.Name != "" {
		by = " by " + e.Holder.Name
	}
	return fmt.Sprintf("%v%s: retry after %v", e.Reason, by, e.RetryAfter)
}

// Unwrap returns Reason.
func (e *DeniedError) Unwrap() error { return e.Reason }

// RetrySeconds returns RetryAfter in whole seconds, rounded up, at least 1: the value of
// a Retry-After header.
func (e *DeniedError) RetrySeconds() int64 {
	return problem.RetrySeconds(e.RetryAfter)
}

// Problem returns the response that the denial stands for: 429 if it came too soon, 409
// if the lease has a holder, whom it does not name.
func (e *DeniedError) Problem() (status int, members map[string]any) {
	if errors.Is(e.Reason, ErrTooSoon) {
		return http.StatusTooManyRequests, map[string]any{
			"detail": fmt.Sprintf("The last one began too recently. Try again in %d s.", e.RetrySeconds()),
		}
	}
	return http.StatusConflict, map[string]any{"detail": "This is being done already."}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
