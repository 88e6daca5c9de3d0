package ratelimit

import (
	"context"
	"errors"
	"net/http"

	"github.com/lazyreq/lazyreq/internal/problem"
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
	if denied, ok := err.(*DeniedError); ok {
		problem.WriteJSON(w, http.StatusTooManyRequests, denied.AppendProblem(make([]byte, 0, 256)), err)
		return
	}
	status, members := problemOf(err)
	problem.Write(w, status, members, err)
}
