package params

import (
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The reasons of an [Error], to be matched with errors.Is.
var (
	// ErrMissing means that no source has the name, that a value which must not be empty is, or
	// that the JSON body is empty. Status 400.
	ErrMissing = errors.New("params: missing")
	// ErrMalformed means that the value or its source has the wrong form. Status 400.
	ErrMalformed = errors.New("params: malformed")
	// ErrInvalid means that a tag or a validation refused the value. Status 422.
	ErrInvalid = errors.New("params: invalid")
	// ErrTooLarge means that a limit of [Options] was exceeded. Status 413, for a query 414.
	ErrTooLarge = errors.New("params: too large")
	// ErrUnsupported means that the body's type, charset or coding isn't supported. Status 415.
	ErrUnsupported = errors.New("params: unsupported content")
	// ErrInterrupted means that the body was not received whole, usually because the
	// client went away. Status 400, or 408 if Options.ReadTimeout or the server's read
	// deadline passed. The reader's own error is in the chain. If the request's context
	// ended, its cause is in the chain and the error isn't an [Error].
	ErrInterrupted = errors.New("params: body interrupted")
)

// ErrBodyTaken is returned if the body was read as a stream before, or if something else
// read or closed it: a mistake of the program and not of the client, so no [Error].
var ErrBodyTaken = errors.New("params: the request body was already read or closed by something else")

// A Source is a part of a request that holds parameters.
type Source string

// The sources, as they appear in an [Error].
const (
	SourcePath   Source = "path"
	SourceQuery  Source = "query"
	SourceForm   Source = "form"
	SourceJSON   Source = "json"
	SourceHeader Source = "header"
	SourceCookie Source = "cookie"
	SourceBody   Source = "body" // a body that isn't read as a form or as JSON
)

// An Error is a mistake of the client: the parameter, its source, and what is wrong with
// it. It is immutable and may be shared.
type Error struct {
	Name   string // the parameter, in JSON like "items.0.price"; empty if the whole source is at fault
	Source Source // empty if none of several has the parameter
	Reason error  // ErrMissing, ErrMalformed, ErrInvalid, ErrTooLarge, ErrUnsupported or ErrInterrupted
	Detail string // a predicate: "must be a whole number"

	pointer  string   // where in a JSON body, "#/items/0/price"
	accepted []string // media types
	cause    error
}

// Error describes the mistake in words for the client.
func (e *Error) Error() string { return "params: " + e.sentence() }

// Unwrap returns the Reason and, if there is one, the cause.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.cause}
}

// Pointer returns the place of the mistake in a JSON body, a JSON Pointer (RFC 6901) as
// a URI fragment: "#/items/0/price". It is empty for other sources, and for a body that
// isn't JSON.
func (e *Error) Pointer() string { return e.pointer }

// Problem returns the status of the response and the members of its RFC 9457 problem
// details: "detail"; for a parameter, "errors", a list with "detail", "source" if known,
// and "parameter", or "pointer" in a JSON body; for an unsupported type, "accepted".
func (e *Error) Problem() (status int, members map[string]any) { return Errors{e}.Problem() }

// listEntry returns e's entry in the list of errors.
func (e *Error) listEntry() map[string]string {
	item := map[string]string{"detail": e.Detail}
	if e.Source != "" {
		item["source"] = string(e.Source)
	}
	switch {
	case e.pointer != "":
		item["pointer"] = e.pointer
	case e.Name != "":
		item["parameter"] = e.Name
	default:
		item["detail"] = e.sentence()
	}
	return item
}

func (e *Error) status() int {
	switch {
	case errors.Is(e.Reason, ErrTooLarge) && e.Source == SourceQuery:
		return http.StatusRequestURITooLong
	case errors.Is(e.Reason, ErrTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(e.Reason, ErrUnsupported):
		return http.StatusUnsupportedMediaType
	case errors.Is(e.Reason, ErrInvalid):
		return http.StatusUnprocessableEntity
	case errors.Is(e.cause, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout
	}
	return http.StatusBadRequest
}

func (e *Error) sentence() string { return e.subject() + " " + e.Detail }

func (e *Error) subject() string {
	switch {
	case e.Name != "" && e.Source != "":
		return string(e.Source) + " parameter " + strconv.Quote(e.Name)
	case e.Name != "":
		return "parameter " + strconv.Quote(e.Name)
	case e.Source == SourceQuery:
		return "the query"
	}
	return "the request body"
}

func malformedError(from Source, name, detail string) *Error {
	return &Error{Name: name, Source: from, Reason: ErrMalformed, Detail: detail}
}

func missingError(from Source, name string) *Error {
	return &Error{Name: name, Source: from, Reason: ErrMissing, Detail: "is missing"}
}

// shorten shortens a text of the client for a message.
func shorten(name string) string {
	const maxLen = 64
	if len(name) > maxLen {
		name = name[:maxLen]
		for !utf8.ValidString(name) && len(name) > maxLen-utf8.UTFMax {
			name = name[:len(name)-1]
		}
		name += "…"
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}
