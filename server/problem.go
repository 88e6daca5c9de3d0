package server

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/lazyreq/lazyreq/internal/problem"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// Problem is an error response by RFC 9457, and an error that a handler can
// return to send it.
type Problem struct {
	// Status is the HTTP status. What is no error's, such as zero, means 500.
	Status int
	// Type identifies the kind of problem by a URI. Empty means about:blank, which adds
	// nothing to the status.
	Type string
	// Title names the kind of problem. Empty means the status's text.
	Title string
	// Detail explains this occurrence to the client.
	Detail string
	// Instance identifies this occurrence by a URI. Empty means none.
	Instance string
	// Members are further members of the JSON object. They take precedence over the fields
	// above.
	Members map[string]any
	// Header has fields of the response, such as WWW-Authenticate. They replace fields of the same name.
	Header http.Header
	// Err is the cause, for the log and for [errors.Is]; clients do not see it.
	Err error

	denied *ratelimit.DeniedError // writes the JSON object, if it isn't nil
}

// Errorf returns a problem with this status. Below 500, the text is its Detail, which clients
// see; from 500 on, it is only logged. The problem wraps what the text does: %w works as in
// [fmt.Errorf].
func Errorf(status int, format string, args ...any) *Problem {
	err := fmt.Errorf(format, args...)
	p := &Problem{Status: status, Err: err}
	if p.status() < 500 {
		p.Detail = err.Error()
	}
	return p
}

// Error returns status, title, detail and cause.
func (p *Problem) Error() string {
	s := strconv.Itoa(p.status()) + " " + p.title()
	if p.Detail != "" {
		s += ": " + strings.TrimSuffix(p.Detail, ".")
	}
	if p.Err != nil && p.Err.Error() != p.Detail {
		s += ": " + p.Err.Error()
	}
	return s
}

// Unwrap returns Err.
func (p *Problem) Unwrap() error { return p.Err }

// MarshalJSON gives the problem+json object.
func (p *Problem) MarshalJSON() ([]byte, error) { return problem.Append(nil, p.status(), p.members()) }

// members returns the members of the JSON object except status.
func (p *Problem) members() map[string]any {
	fields := [...]struct{ name, text string }{
		{"type", p.Type}, {"title", p.Title}, {"detail", p.Detail}, {"instance", p.Instance},
	}
	var all map[string]any
	for _, f := range fields {
		if _, given := p.Members[f.name]; f.text == "" || given {
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

// asProblem returns the response that err stands for.
func asProblem(err error) *Problem {
	if denied, ok := err.(*ratelimit.DeniedError); ok { // as frequent as there is too much to do
		return &Problem{Status: http.StatusTooManyRequests, Err: err, denied: denied}
	}
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	status, members := problem.Of(err)
	return &Problem{Status: status, Members: members, Err: err}
}

// ProblemOf returns the problem that err stands for, with the status, the title and all other texts in
// its fields. It is a copy, which the caller may change. ProblemOf returns nil for nil.
func ProblemOf(err error) *Problem {
	if err == nil {
		return nil
	}
	p := *asProblem(err)
	if p.denied != nil {
		_, p.Members = p.denied.Problem()
		p.denied = nil
	}
	p.Members = maps.Clone(p.Members)
	for name, field := range map[string]*string{"type": &p.Type, "title": &p.Title, "detail": &p.Detail, "instance": &p.Instance} {
		if text, ok := p.Members[name].(string); ok {
			*field = text
			delete(p.Members, name)
		}
	}
	p.Header = p.Header.Clone()
	p.Status, p.Title = p.status(), p.title()
	return &p
}

// addHeader adds the fields of p to the header.
func (p *Problem) addHeader(h http.Header) {
	for name, lines := range p.Header {
		h[http.CanonicalHeaderKey(name)] = slices.Clone(lines)
	}
}

// write sends p as the whole response, except for its header fields.
func (p *Problem) write(w http.ResponseWriter) {
	if p.denied != nil {
		problem.WriteJSON(w, p.status(), p.denied.AppendProblem(make([]byte, 0, 256)), p.Err)
		return
	}
	problem.Write(w, p.status(), p.members(), p.Err)
}

// clearRepresentation removes the fields that described a body which is not going to be sent. It keeps
// no-store, which a rate limit's middleware has set for its denial.
func clearRepresentation(h http.Header) {
	for name, lines := range h {
		switch name {
		case "Cache-Control":
			if len(lines) != 1 || lines[0] != "no-store" {
				delete(h, name)
			}
		case "Content-Length", "Content-Type", "Content-Encoding", "Content-Language", "Content-Location",
			"Content-Range", "Content-Disposition", "Content-Digest", "Repr-Digest", "Accept-Ranges",
			"Expires", "Etag", "Last-Modified", "Location", "Trailer", "Transfer-Encoding":
			delete(h, name)
		}
	}
}
