package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/lazyreq/lazyreq/internal/problem"
	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// outcome is how a resolution ended.
type outcome uint8

const (
	resolved outcome = iota
	rejected         // with an error that stands for a response below 500
	failed
	timedOut
	canceled // with the request
	panicked
	outcomes
)

// String returns the value of the attribute outcome.
func (o outcome) String() string {
	return [outcomes]string{"ok", "rejected", "error", "timeout", "canceled", "panic"}[o]
}

// failed reports whether the outcome is a fault of the server.
func (o outcome) failed() bool { return o == failed || o == timedOut || o == panicked }

// outcomeOf returns how the resolution of a property under ctx has ended with err.
func outcomeOf(ctx context.Context, name string, err error) (o outcome) {
	defer func() {
		if recover() != nil { // in a method of err
			o = failed
		}
	}()
	ended := ctx.Err() != nil
	if ended {
		if timeout, ok := context.Cause(ctx).(*reqctx.TimeoutError); ok && timeout.Name == name {
			return timedOut // even if Resolve has returned a value afterwards
		}
	}
	switch {
	case err == nil:
		return resolved
	case err == reqctx.ErrNotReturned:
		return panicked
	case errors.Is(err, reqctx.ErrFinished), ended && isCancellation(ctx, err):
		return canceled
	case statusOf(err) < http.StatusInternalServerError:
		return rejected
	default:
		return failed
	}
}

// isCancellation reports whether err says that ctx has ended. At the end of a request its cause is
// [lazy.ErrClosed].
func isCancellation(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Cause(ctx))
}

// statusOf returns the status of the response that err stands for.
func statusOf(err error) int {
	var p *server.Problem
	status := 0
	if errors.As(err, &p) {
		status = p.Status
	} else {
		status, _ = problem.Of(err)
	}
	if status < 400 || status > 599 {
		return http.StatusInternalServerError
	}
	return status
}

// isStoreError reports whether err is a failure of the store of rate limits.
func isStoreError(err error) (is bool) {
	defer func() { _ = recover() }() // in a method of err
	return errors.Is(err, ratelimit.ErrStore)
}

// failureOf returns why a request has failed, "" if it hasn't or the error stands for a response
// below 500.
func failureOf(ctx context.Context, info *server.RequestInfo) (reason string) {
	err := info.Err
	if err == nil {
		return ""
	}
	defer func() {
		if recover() != nil { // in a method of err
			reason = "error"
		}
	}()
	var panics *lazy.PanicError
	var store *session.Error
	switch {
	case errors.As(err, &panics) || errors.Is(err, lazy.ErrGoexit):
		return "panic"
	case ctx.Err() != nil:
		return "canceled"
	case errors.Is(err, http.ErrAbortHandler):
		return "aborted"
	case errors.Is(err, session.ErrConflict) || errors.Is(err, session.ErrGone):
		return "session_conflict"
	case errors.As(err, &store):
		return "session"
	case errors.Is(err, ratelimit.ErrStore):
		return "ratelimit"
	case info.CutOff:
		return "cut_off"
	case statusOf(err) < http.StatusInternalServerError:
		return ""
	default:
		return "error"
	}
}

// These bound texts, in bytes.
const (
	maxName      = 100
	maxErrorText = 300
)

// errorText returns err's text, also if its Error method panics.
func errorText(err error) string { return clip(fmt.Sprint(err), maxErrorText) }

// clip returns s in valid UTF-8, cut after about n bytes.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}
