package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/lazyreq/lazyreq/internal/problem"
)

// Problem is an error response as defined by RFC 9457, and the error with which a handler sends it.
type Problem struct {
	// Status is the HTTP status. A status below 400 or above 599, such as zero, means 500.
	Status int
	// Type identifies the kind of problem with a URI. Empty means about:blank, which adds nothing to the status.
	Type string
	// Title names the kind of problem. Empty means the text of the status.
	Title string
	// Detail explains the occurrence to the client.
	Detail string
	// Instance identifies the occurrence with a URI.
	Instance string
	// Members are more members of the JSON object. They take precedence over the fields above.
	Members map[string]any
	// Header contains fields of the response, such as WWW-Authenticate. They replace fields of the same name, except
	// that Vary and Set-Cookie are added. Content-Type and other fields about the body are set by the code that
	// writes it.
	Header http.Header
	// Err is the cause, for the log and for [errors.Is]. Clients do not see it.
	Err error
}

// Errorf returns a problem with this status. Below 500, the text is its Detail, which clients see. From 500 on, the
// text is only logged. %w works as in [fmt.Errorf].
func Errorf(status int, format string, args ...any) *Problem {
	err := fmt.Errorf(format, args...)
	p := &Problem{Status: status, Err: err}
	if p.status() < 500 {
		p.Detail = err.Error()
	}
	return p
}

// Error returns the status, title, detail and cause. It is for logs and not for clients.
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

// MarshalJSON returns the object of problem+json.
func (p *Problem) MarshalJSON() ([]byte, error) { return problem.Marshal(p.status(), p.members()) }

// members returns the members of the JSON object except the status. The caller must not change them.
func (p *Problem) members() map[string]any {
	if p.Type == "" && p.Title == "" && p.Detail == "" && p.Instance == "" {
		return p.Members
	}
	all := make(map[string]any, 4+len(p.Members))
	for _, t := range p.texts() {
		if *t.field != "" {
			all[t.name] = *t.field
		}
	}
	maps.Copy(all, p.Members)
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

// isNil reports whether err is nil or a nil *Problem, which a handler may return.
func isNil(err error) bool {
	p, ok := err.(*Problem)
	return err == nil || ok && p == nil
}

// asProblem returns the problem of err.
func asProblem(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	status, members := problem.Of(err)
	return &Problem{Status: status, Members: members, Err: err}
}

// ProblemOf returns the problem of err, with the status, the title and the other texts in its fields. It is a copy
// that the caller may change, except for the values of Members. Its Header is not nil. ProblemOf returns nil for nil.
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

// addHeader sets the header fields of p. It keeps the Vary and the cookies that middleware has set.
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

// write sends the status and the body of p.
func (p *Problem) write(w http.ResponseWriter) {
	problem.Write(w, p.status(), p.members(), p.Err)
}

// clearRepresentation removes the fields that describe a body which is not going to be sent. It keeps no-store,
// because error responses may be cached, too.
func clearRepresentation(h http.Header) {
	for name, lines := range h {
		switch name {
		case "Cache-Control":
			if delete(h, name); strings.Contains(strings.ToLower(strings.Join(lines, ",")), "no-store") {
				h[name] = []string{"no-store"}
			}
		case "Content-Length", "Content-Type", "Content-Encoding", "Content-Language", "Content-Location",
			"Content-Range", "Content-Disposition", "Content-Digest", "Repr-Digest", "Accept-Ranges",
			"Expires", "Etag", "Last-Modified", "Location", "Trailer", "Transfer-Encoding":
			delete(h, name)
		}
	}
}

// WriteJSON answers with v as JSON of [encoding/json]. If v can't be encoded, WriteJSON writes nothing and returns an
// error, which becomes a 500 if the [HandlerFunc] returns it.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err = w.Write(append(body, '\n'))
	return err
}
