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

// These errors are wrapped in the [Error] of a save that fails.
var (
	// ErrGone means that the session was destroyed, has expired or was renewed in the meantime.
	ErrGone = storage.ErrGone
	// ErrConflict means that another request changed a field that must not have changed.
	ErrConflict = storage.ErrConflict
	// ErrNotCounter means that a field is not a counter, or that its sum is out of range.
	ErrNotCounter = storage.ErrNotCounter
	// ErrTooLarge means that the session or its user's name would be larger than allowed.
	ErrTooLarge = storage.ErrTooLarge
)

// ErrNotBound is returned by methods that need a user if the session is not bound to one. Its response is a 401.
var ErrNotBound error = notBound{}

type notBound struct{}

func (notBound) Error() string { return "session: no user is logged in" }

func (notBound) Problem() (status int, members map[string]any) {
	return http.StatusUnauthorized, map[string]any{"title": "Login required", "detail": "Log in and try again."}
}

// An Error is a failure of the session's store. It contains no part of a token and no value.
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

// Problem returns the response for the error: 409 if the session ended, was renewed or has a conflict; 500 if the
// writes can never be saved; 503 otherwise.
func (e *Error) Problem() (status int, members map[string]any) {
	const notSaved = " The changes of this request were not saved."
	status, title, detail := http.StatusServiceUnavailable, "Session unavailable", "The server could not "+e.Action+" the session. Try again."
	switch {
	case errors.Is(e.Err, ErrGone):
		status, title, detail = http.StatusConflict, "Session ended", "The session ended or was renewed while this request ran."+notSaved
	case errors.Is(e.Err, ErrConflict):
		status, title, detail = http.StatusConflict, "Session changed", "Another request changed the session at the same time."+notSaved
	case errors.Is(e.Err, ErrTooLarge):
		return http.StatusInternalServerError, map[string]any{"title": "Session too large"}
	case errors.Is(e.Err, ErrNotCounter):
		return http.StatusInternalServerError, map[string]any{"title": "Session not saved"}
	}
	return status, map[string]any{"title": title, "detail": detail}
}

// lateError returns the error for a method that was called after the header went out. field may be empty.
func lateError(method, field string) error {
	if field != "" {
		method += " of field " + strconv.Quote(field)
	}
	return fmt.Errorf("session: %s came too late: %w", method, reqctx.ErrCommitted)
}
