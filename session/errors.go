package session

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/lazyreq/lazyreq/reqctx"
)

// An Error is a failure of the session's store. It contains no part of a token
// and no value.
type Error struct {
	Action string // "load", "save", "destroy", "list" or "revoke"
	Err    error  // the store's, which errors.Is and errors.As find
}

// Error names the action and the store's error.
func (e *Error) Error() string { return fmt.Sprintf("session: cannot %s: %v", e.Action, e.Err) }

// Unwrap returns the store's error.
func (e *Error) Unwrap() error { return e.Err }

// Problem makes it a response: 409 if the session was destroyed, has expired or
// was renewed while the request ran, or a field was changed that must not be; 500 if
// what was written cannot be saved, ever; and 503 otherwise.
func (e *Error) Problem() (status int, members map[string]any) {
	switch {
	case errors.Is(e.Err, ErrGone):
		return http.StatusConflict, map[string]any{
			"title":  "Session ended",
			"detail": "The session ended or was renewed while this request ran. What it changed was not saved.",
		}
	case errors.Is(e.Err, ErrConflict):
		return http.StatusConflict, map[string]any{
			"title":  "Session changed",
			"detail": "Another request has changed the session meanwhile. What this one changed was not saved.",
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

// committed says that a change of the session came too late.
func committed(doing string) error {
	return fmt.Errorf("session: %s came too late: %w", doing, reqctx.ErrCommitted)
}
