// Package problem turns errors into the responses of RFC 9457.
package problem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// problemer is an error with its own response.
type problemer interface {
	Problem() (status int, members map[string]any)
}

// Of returns the response that err stands for. The first error in its chain with a method Problem decides. Otherwise, the
// status is 413 for an [http.MaxBytesError], 503 for [context.DeadlineExceeded], and 500 for every other error.
func Of(err error) (status int, members map[string]any) {
	var p problemer
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p.Problem()
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge, map[string]any{
			"detail": fmt.Sprintf("The body may have at most %d bytes.", tooLarge.Limit),
		}
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable, nil
	default:
		return http.StatusInternalServerError, nil
	}
}

// Write sends a problem as the whole response. A status below 400 or above 599 means 500. members are the members of the
// JSON object except status. The default title is the status's text. If a member cannot be encoded, only title and
// detail are sent. Write adds Retry-After like [SetRetryAfter].
func Write(w http.ResponseWriter, status int, members map[string]any, cause error) {
	if status < 400 || status > 599 {
		status = http.StatusInternalServerError
	}
	body, err := Marshal(status, members)
	if err != nil {
		texts := map[string]any{}
		for _, name := range []string{"title", "detail"} {
			if text, ok := members[name].(string); ok {
				texts[name] = text
			}
		}
		body, _ = Marshal(status, texts)
	}
	body = append(body, '\n')
	h := w.Header()
	h["Content-Type"] = []string{"application/problem+json"}
	h["X-Content-Type-Options"] = []string{"nosniff"}
	SetLength(h, status, len(body))
	SetRetryAfter(h, status, cause)
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails only if the client has gone away
}

// SetLength sets Content-Length for a body of n bytes if the status allows a body and no middleware encodes the body.
// Otherwise, it removes the field.
func SetLength(h http.Header, status, n int) {
	if len(h["Content-Encoding"]) == 0 && status != http.StatusNoContent && status != http.StatusNotModified {
		h["Content-Length"] = []string{strconv.Itoa(n)}
	} else {
		delete(h, "Content-Length")
	}
}

// SetRetryAfter adds Retry-After to the header of a 429 or 503 if cause has a method RetrySeconds and the field is not
// set.
func SetRetryAfter(h http.Header, status int, cause error) {
	passes := status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
	if !passes || len(h["Retry-After"]) > 0 {
		return
	}
	var wait retrier
	if errors.As(cause, &wait) {
		h["Retry-After"] = []string{strconv.FormatInt(wait.RetrySeconds(), 10)}
	}
}

// Seconds returns d in whole seconds, rounded up.
func Seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// RetrySeconds returns d in whole seconds for Retry-After. It is at least 1.
func RetrySeconds(d time.Duration) int64 { return max(1, Seconds(d)) }

// retrier is an error that says after how many seconds the client may try again, such as a denial by a rate limit.
type retrier interface{ RetrySeconds() int64 }

// Marshal returns the JSON object with the status and the members. The default title is the status's text.
func Marshal(status int, members map[string]any) ([]byte, error) {
	all := map[string]any{"title": http.StatusText(status)}
	maps.Copy(all, members)
	all["status"] = status
	return json.Marshal(all)
}

// Writer answers r with the response that err stands for.
type Writer func(w http.ResponseWriter, r *http.Request, err error)

// WriterKey is the key of a Writer in the context of a server's request. Middleware of other packages answers with this
// Writer, so that the server decides how its errors look.
type WriterKey struct{}

// WriterOf returns the Writer of ctx, or nil if there is none.
func WriterOf(ctx context.Context) Writer {
	w, _ := ctx.Value(WriterKey{}).(Writer)
	return w
}
