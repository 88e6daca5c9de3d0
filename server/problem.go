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
	// Header has fields of the response, such as WWW-Authenticate. They replace fields of the same name;
	// Vary and Set-Cookie are added to those of the response. Fields that describe the body, such as
	// Content-Type, belong to the code that writes the body.
	Header http.Header
	// Err is the cause, for the log and for [errors.Is]; clients do not see it.
	Err error
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

// Error returns status, title, detail and cause. It is for logs, and not for clients.
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
	var all map[string]any
	texts := p.texts()
	for _, t := range texts {
		if _, given := p.Members[t.name]; *t.field == "" || given {
			continue
		}
		if all == nil {
			all = make(map[string]any, len(texts)+len(p.Members))
			maps.Copy(all, p.Members)
		}
		all[t.name] = *t.field
	}
	if all == nil {
		return p.Members
	}
	return all
}

type problemText struct {
	name  string
	field *string
}

// texts returns the fields of p that are members of the JSON object.
func (p *Problem) texts() [4]problemText {
	return [...]problemText{{"type", &p.Type}, {"title", &p.Title}, {"detail", &p.Detail}, {"instance", &p.Instance}}
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

// isNil reports whether err is nil, or a nil *Problem: a handler may return its variable of that type.
func isNil(err error) bool {
	p, ok := err.(*Problem)
	return err == nil || ok && p == nil
}

// asProblem returns the response that err stands for.
func asProblem(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	status, members := problem.Of(err)
	return &Problem{Status: status, Members: members, Err: err}
}

// ProblemOf returns the problem that err stands for, with the status, the title and all other texts in
// its fields. It is a copy, which the caller may change, except for the values of Members, and its
// Header is not nil. ProblemOf returns nil for nil.
func ProblemOf(err error) *Problem {
	if isNil(err) {
		return nil
	}
	p := *asProblem(err)
	p.Members = maps.Clone(p.Members)
	for _, t := range p.texts() {
		if text, ok := p.Members[t.name].(string); ok {
			*t.field = text
			delete(p.Members, t.name)
		}
	}
	h := http.Header{}
	p.addHeader(h)
	p.Header = h
	p.Status, p.Title = p.status(), p.title()
	return &p
}

// addHeader sets the fields of p in the header, beside the Vary and the cookies that middleware has set.
func (p *Problem) addHeader(h http.Header) {
	for name, lines := range p.Header {
		switch name = http.CanonicalHeaderKey(name); name {
		case "Vary", "Set-Cookie":
			h[name] = slices.Concat(h[name], added(h[name], lines))
		default:
			h[name] = slices.Clone(lines)
		}
	}
}

// write sends p as the whole response, except for its header fields.
func (p *Problem) write(w http.ResponseWriter) {
	problem.Write(w, p.status(), p.members(), p.Err)
}

// clearRepresentation removes the fields that described a body which is not going to be sent. It keeps
// no-store, as error responses may be cached, too.
func clearRepresentation(h http.Header) {
	for name, lines := range h {
		switch name {
		case "Cache-Control":
			if delete(h, name); slices.ContainsFunc(lines, forbidsStoring) {
				h[name] = []string{"no-store"}
			}
		case "Content-Length", "Content-Type", "Content-Encoding", "Content-Language", "Content-Location",
			"Content-Range", "Content-Disposition", "Content-Digest", "Repr-Digest", "Accept-Ranges",
			"Expires", "Etag", "Last-Modified", "Location", "Trailer", "Transfer-Encoding":
			delete(h, name)
		}
	}
}

// forbidsStoring reports whether a line of Cache-Control has the directive no-store.
func forbidsStoring(line string) bool {
	for directive := range strings.SplitSeq(line, ",") {
		if strings.EqualFold(strings.TrimSpace(directive), "no-store") {
			return true
		}
	}
	return false
}
