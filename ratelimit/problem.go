package ratelimit

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
)

// problemOf returns the response that an error stands for.
func problemOf(err error) (status int, members map[string]any) {
	var told interface {
		Problem() (status int, members map[string]any)
	}
	switch {
	case errors.As(err, &told):
		return told.Problem()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable, nil
	default:
		return http.StatusInternalServerError, nil
	}
}

// writeProblem answers with the RFC 9457 problem that the error stands for.
func writeProblem(w http.ResponseWriter, _ *http.Request, err error) {
	status, members := problemOf(err)
	if status < 400 || status > 599 {
		status = http.StatusInternalServerError
	}
	problem := map[string]any{"title": http.StatusText(status)}
	for name, v := range members {
		problem[name] = v
	}
	problem["status"] = status
	body, wrong := json.Marshal(problem)
	if wrong != nil { // a member that is no JSON
		body, _ = json.Marshal(map[string]any{"status": status, "title": http.StatusText(status)})
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	var wait interface{ RetrySeconds() int64 }
	if errors.As(err, &wait) && h.Get("Retry-After") == "" {
		h.Set("Retry-After", integer(wait.RetrySeconds()))
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone is nobody to tell
}
