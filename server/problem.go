package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"github.com/lazyreq/lazyreq/internal/problem"
	"github.com/lazyreq/lazyreq/ratelimit"
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

	denied *ratelimit.DeniedError // what the members are, if it is only this
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
func (p *Problem) MarshalJSON() ([]byte, error) { return problem.Append(nil, p.status(), p.members()) }

// members returns those of the JSON object, but for the status.
func (p *Problem) members() map[string]any {
	fields := [...]struct{ name, text string }{
		{"type", p.Type}, {"title", p.Title}, {"detail", p.Detail}, {"instance", p.Instance},
	}
	var all map[string]any
	for _, f := range fields {
		if _, overruled := p.Members[f.name]; f.text == "" || overruled {
			continue
		}
		if all == nil {
			all = make(map[string]any, len(fields)+len(p.Members))
			maps.Copy(all, p.Members)
		}
		all[f.name] = f.text
	}
	if all == nil {
		return p.Members
	}
	return all
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
	switch e := err.(type) { // as it is mostly
	case *Problem:
		return e
	case *ratelimit.DeniedError:
		return &Problem{Status: http.StatusTooManyRequests, Err: err, denied: e}
	default:
		return findProblem(err)
	}
}

// findProblem is asProblem for an error that may wrap what the response is.
func findProblem(err error) *Problem {
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
	if p.denied != nil {
		problem.WriteJSON(w, p.status(), p.denied.AppendProblem(make([]byte, 0, 256)), p.Err)
		return
	}
	problem.Write(w, p.status(), p.members(), p.Err)
}

// clearRepresentation takes away what described a body that is not going to be
// sent.
func clearRepresentation(h http.Header) {
	for name := range h {
		switch name {
		case "Content-Length", "Content-Type", "Content-Encoding", "Content-Language", "Content-Location",
			"Content-Range", "Content-Disposition", "Content-Digest", "Repr-Digest", "Accept-Ranges",
			"Cache-Control", "Expires", "Etag", "Last-Modified", "Location", "Trailer", "Transfer-Encoding":
			delete(h, name)
		}
	}
}
