package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// Problem is an error response by RFC 9457, and an error that a handler can
// return to send it.
type Problem struct {
	// Status is the HTTP status. Default: 500.
	Status int
	// Type identifies the kind of problem by a URI. Default: about:blank, which
	// means no more than the status does.
	Type string
	// Title says what kind of problem it is. Default: the status's text.
	Title string
	// Detail says what is wrong this time, to the client.
	Detail string
	// Instance identifies this occurrence by a URI. Default: none.
	Instance string
	// Members are further members of the JSON object. The names of those above
	// are overruled by them.
	Members map[string]any
	// Err is the cause, for the log and for [errors.Is]; clients do not see it.
	Err error
}

// problemer is how packages below this one say what response an error is.
type problemer interface {
	Problem() (status int, members map[string]any)
}

// Errorf returns a problem with this status and detail.
func Errorf(status int, format string, args ...any) *Problem {
	return &Problem{Status: status, Detail: fmt.Sprintf(format, args...)}
}

// Error tells status, title, detail and cause.
func (p *Problem) Error() string {
	s := strconv.Itoa(p.status()) + " " + p.title()
	if p.Detail != "" {
		s += ": " + p.Detail
	}
	if p.Err != nil {
		s += ": " + p.Err.Error()
	}
	return s
}

// Unwrap returns Err.
func (p *Problem) Unwrap() error { return p.Err }

// MarshalJSON gives the problem+json object.
func (p *Problem) MarshalJSON() ([]byte, error) {
	m := map[string]any{"status": p.status(), "title": p.title()}
	for name, v := range map[string]string{"type": p.Type, "detail": p.Detail, "instance": p.Instance} {
		if v != "" {
			m[name] = v
		}
	}
	for name, v := range p.Members {
		if name != "status" {
			m[name] = v
		}
	}
	return json.Marshal(m)
}

func (p *Problem) status() int {
	if p.Status < 400 || p.Status > 599 {
		return http.StatusInternalServerError
	}
	return p.Status
}

func (p *Problem) title() string {
	if p.Title != "" {
		return p.Title
	}
	return http.StatusText(p.status())
}

// asProblem maps an error to the response it is.
func asProblem(err error) *Problem {
	var (
		p       *Problem
		told    problemer
		tooLong *http.MaxBytesError
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &told):
		status, members := told.Problem()
		return &Problem{Status: status, Members: members, Err: err}
	case errors.As(err, &tooLong):
		return &Problem{Status: http.StatusRequestEntityTooLarge, Err: err,
			Detail: fmt.Sprintf("The body may have at most %d bytes.", tooLong.Limit)}
	case errors.Is(err, context.DeadlineExceeded):
		return &Problem{Status: http.StatusServiceUnavailable, Err: err}
	default:
		return &Problem{Status: http.StatusInternalServerError, Err: err}
	}
}

// commitProblem is the response when the handler's could not be committed: a failure of
// the server, whatever the error says of itself, or a conflict with another request,
// which the client can resolve.
func commitProblem(err error) *Problem {
	p := asProblem(err)
	if p.status() < 500 && p.status() != http.StatusConflict {
		p = &Problem{Status: http.StatusInternalServerError, Err: err}
	}
	return p
}

// write sends p as the whole response.
func (p *Problem) write(w http.ResponseWriter) {
	body, err := p.MarshalJSON()
	if err != nil { // a member that is no JSON
		body, _ = (&Problem{Status: p.Status, Title: p.Title, Detail: p.Detail}).MarshalJSON()
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)+1))
	var wait interface{ RetrySeconds() int64 } // a denial by a rate limit, or one that can't be checked
	passes := p.status() == http.StatusTooManyRequests || p.status() == http.StatusServiceUnavailable
	if passes && errors.As(p.Err, &wait) && h.Get("Retry-After") == "" {
		h.Set("Retry-After", strconv.FormatInt(wait.RetrySeconds(), 10))
	}
	w.WriteHeader(p.status())
	_, _ = w.Write(append(body, '\n')) // a client that is gone is nobody to tell
}

// clearRepresentation takes away what described a body that is not going to be
// sent.
func clearRepresentation(h http.Header) {
	for _, name := range []string{
		"Content-Length", "Content-Type", "Content-Encoding", "Content-Language", "Content-Location",
		"Content-Range", "Content-Disposition", "Content-Digest", "Repr-Digest", "Accept-Ranges",
		"Cache-Control", "Expires", "Etag", "Last-Modified", "Location", "Trailer", "Transfer-Encoding",
	} {
		h.Del(name)
	}
}
