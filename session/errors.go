package session

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session/storage"
)

// These errors of a save are wrapped in an [Error].
var (
	// ErrGone means that the session was destroyed, has expired or was renewed in the meantime.
	ErrGone = storage.ErrGone
	// ErrConflict means that another request changed a field that must not have changed.
	ErrConflict = storage.ErrConflict
	// ErrNotCounter means that a field is not a counter, or that its sum is out of range.
	ErrNotCounter = storage.ErrNotCounter
	// ErrTooLarge means that the session or a field would be larger than allowed.
	ErrTooLarge = storage.ErrTooLarge
)

// ErrNotBound is the error of methods that need a user, for a session that is not bound
// to one. As a response it is a 401.
var ErrNotBound error = notBound{}

type notBound struct{}

func (notBound) Error() string { return "session: no user is logged in" }

func (notBound) Problem() (status int, members map[string]any) {
	return http.StatusUnauthorized, map[string]any{"title": "Login required", "detail": "Log in and try again."}
}

// An Error is a failure of the session's store. It contains no part of a token
// and no value.
type Error struct {
	Action string // "load", "save", "destroy", "list" or "revoke"
	Err    error  // the store's error
}

// Error returns the action and the text of the store's error.
func (e *Error) Error() string {
	return fmt.Sprintf("session: cannot %s: %s", e.Action, strings.TrimPrefix(e.Err.Error(), "session: "))
}

// Unwrap returns the store's error.
func (e *Error) Unwrap() error { return e.Err }

// Problem returns the response for the error: 409 if the session ended or was renewed
// while the request ran, or a field has a conflict; 500 if the writes can never be
// saved; 503 otherwise.
func (e *Error) Problem() (status int, members map[string]any) {
	switch {
	case errors.Is(e.Err, ErrGone):
		return http.StatusConflict, map[string]any{
			"title":  "Session ended",
			"detail": "The session ended or was renewed while this request ran. The changes of this request were not saved.",
		}
	case errors.Is(e.Err, ErrConflict):
		return http.StatusConflict, map[string]any{
			"title":  "Session changed",
			"detail": "Another request changed the session at the same time. The changes of this request were not saved.",
		}
	case errors.Is(e.Err, ErrTooLarge):
		return http.StatusInternalServerError, map[string]any{"title": "Session too large"}
	case errors.Is(e.Err, ErrNotCounter):
		return http.StatusInternalServerError, map[string]any{"title": "Session not saved"}
	}
	return http.StatusServiceUnavailable, map[string]any{
		"title":  "Session unavailable",
		"detail": fmt.Sprintf("The server could not %s the session. Try again.", e.Action),
	}
}

// lateError is the error of a method, on a field unless that is empty, that was called
// after the header went out.
func lateError(method, field string) error {
	if field != "" {
		method += " of field " + strconv.Quote(field)
	}
	return fmt.Errorf("session: %s came too late: %w", method, reqctx.ErrCommitted)
}
