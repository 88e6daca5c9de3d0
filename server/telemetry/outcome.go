package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// outcome is the result of a resolution.
type outcome uint8

const (
	resolved outcome = iota
	rejected         // the error is a response below 500
	failed
	timedOut
	canceled // the request has ended
	panicked
	outcomes
)

// String returns the value of the attribute outcome.
func (o outcome) String() string {
	return [outcomes]string{"ok", "rejected", "error", "timeout", "canceled", "panic"}[o]
}

// failed reports whether the outcome is a fault of the server.
func (o outcome) failed() bool { return o == failed || o == timedOut || o == panicked }

// outcomeOf returns the outcome of the resolution of a property under ctx that returned err.
func outcomeOf(ctx context.Context, name string, err error) (o outcome) {
	defer func() {
		if recover() != nil { // a method of err has panicked
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
	case server.ProblemOf(err).Status < http.StatusInternalServerError:
		return rejected
	default:
		return failed
	}
}

// isCancellation reports whether err is caused by the end of ctx. At the end of a request its cause is
// [lazy.ErrClosed].
func isCancellation(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Cause(ctx))
}

// failureOf returns why a request has failed. It returns "" if it has not, or if its error is a response below 500.
func failureOf(ctx context.Context, info *server.RequestInfo) (reason string) {
	err := info.Err
	if err == nil {
		return ""
	}
	defer func() {
		if recover() != nil { // a method of err has panicked
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
	case server.ProblemOf(err).Status < http.StatusInternalServerError:
		return ""
	default:
		return "error"
	}
}

// Maximum lengths of texts in bytes.
const (
	maxName      = 100
	maxErrorText = 300
)

// errorText returns the text of err, even if its Error method panics.
func errorText(err error) string { return clip(fmt.Sprint(err), maxErrorText) }

// clip returns s as valid UTF-8, cut after about n bytes.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}
