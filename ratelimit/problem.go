package ratelimit

import (
	"context"
	"errors"
	"net/http"

	"github.com/lazyreq/lazyreq/internal/problem"
)

// problemFor returns the response that an error stands for.
func problemFor(err error) (status int, members map[string]any) {
	status, members = problem.Of(err)
	if status == http.StatusInternalServerError && errors.Is(err, context.Canceled) {
		status = http.StatusServiceUnavailable // the request was, or a call that it shared
	}
	return status, members
}

// writeProblem answers with the RFC 9457 problem that the error stands for.
func writeProblem(w http.ResponseWriter, _ *http.Request, err error) {
	if denied, ok := err.(*DeniedError); ok {
		problem.WriteJSON(w, http.StatusTooManyRequests, denied.AppendProblem(make([]byte, 0, 256)), err)
		return
	}
	status, members := problemFor(err)
	problem.Write(w, status, members, err)
}
