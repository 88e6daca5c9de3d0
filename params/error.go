package params

import (
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/lazyreq/lazyreq/internal/option"
)

// The reasons of an [Error], to be matched with errors.Is.
var (
	// ErrMissing means that no source has the parameter, that a value is empty and must not be, or that the
	// JSON body is empty. Status 400.
	ErrMissing = errors.New("params: missing")
	// ErrMalformed means that the value or its source has the wrong form. Status 400.
	ErrMalformed = errors.New("params: malformed")
	// ErrInvalid means that a tag or a validation refused the value. Status 422.
	ErrInvalid = errors.New("params: invalid")
	// ErrTooLarge means that a limit of [Options] was exceeded. Status 413, or 414 for a query.
	ErrTooLarge = errors.New("params: too large")
	// ErrUnsupported means that the type, the charset or the coding of the body is not supported. Status 415.
	ErrUnsupported = errors.New("params: unsupported content")
	// ErrInterrupted means that the body was not received completely, usually because the client went away.
	// Status 400, or 408 after a timeout. The error of the body's reader is in the chain. If the request's
	// context ended, the error is not an [Error] and has the context's cause in its chain.
	ErrInterrupted = errors.New("params: body interrupted")
)

// ErrBodyTaken is returned if the body was read as a stream before, or if something else read or closed it. This is a
// mistake of the program, so it is not an [Error]. Over HTTP/2, a closed body is an [ErrInterrupted] instead.
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
	SourceBody   Source = "body" // a body that is not read as a form or as JSON
)

// An Error is a mistake of the client. It is immutable.
type Error struct {
	Name   string // the parameter, in JSON like "items.0.price"; empty if the error is about the whole source
	Source Source // empty if several sources were searched
	Reason error  // ErrMissing, ErrMalformed, ErrInvalid, ErrTooLarge, ErrUnsupported or ErrInterrupted
	Detail string // a predicate: "must be a whole number"

	pointer  string   // the place in a JSON body, "#/items/0/price"
	accepted []string // media types
	cause    error
}

// newError returns an Error. It shortens the name, which may be the client's.
func newError(reason error, from Source, name, detail string) *Error {
	return &Error{Name: shorten(name), Source: from, Reason: reason, Detail: detail}
}

func malformedError(from Source, name, detail string) *Error {
	return newError(ErrMalformed, from, name, detail)
}

// shorten shortens a text of the client for a message.
func shorten(text string) string {
	const maxLen = 64
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > maxLen {
		text = strings.ToValidUTF8(text[:maxLen], "") + "…"
	}
	return text
}

// Error describes the mistake in words for the client.
func (e *Error) Error() string { return Errors{e}.Error() }

// Unwrap returns the Reason and, if there is one, the cause.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.cause}
}

// Pointer returns the place of the mistake in a JSON body: a JSON Pointer (RFC 6901) as a URI fragment, such
// as "#/items/0/price". It is empty for other sources and for a body that is not valid JSON.
func (e *Error) Pointer() string { return e.pointer }

// Problem returns the status of the response and the members of its problem details (RFC 9457). The member
// "detail" describes the mistake. If the error is about a parameter, "errors" is a list with an entry for
// it, which has "detail", "source" if known, and "parameter", or "pointer" in a JSON body. For an unsupported
// type, "accepted" lists the supported ones.
func (e *Error) Problem() (status int, members map[string]any) { return Errors{e}.Problem() }

// listEntry returns e's entry in the member "errors".
func (e *Error) listEntry() map[string]string {
	entry := map[string]string{"detail": e.Detail}
	if e.Source != "" {
		entry["source"] = string(e.Source)
	}
	switch {
	case e.pointer != "":
		entry["pointer"] = e.pointer
	case e.Name != "":
		entry["parameter"] = e.Name
	default:
		entry["detail"] = e.sentence()
	}
	return entry
}

func (e *Error) status() int {
	switch {
	case e.Reason == ErrTooLarge && e.Source == SourceQuery:
		return http.StatusRequestURITooLong
	case e.Reason == ErrTooLarge:
		return http.StatusRequestEntityTooLarge
	case e.Reason == ErrUnsupported:
		return http.StatusUnsupportedMediaType
	case e.Reason == ErrInvalid:
		return http.StatusUnprocessableEntity
	case errors.Is(e.cause, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout
	}
	return http.StatusBadRequest
}

// sentence describes the mistake: the parameter or the source, and the Detail.
func (e *Error) sentence() string {
	subject := "the request body"
	switch {
	case e.Name != "":
		subject = strings.TrimSpace(string(e.Source) + " parameter " + strconv.Quote(e.Name))
	case e.Source == SourceQuery, e.Source == SourceHeader:
		subject = "the " + string(e.Source)
	}
	return subject + " " + e.Detail
}

// maxErrors is the largest number of mistakes that are reported to a client.
const maxErrors = 50

// Errors are several mistakes of the client in one request, at most 50. [errors.As] finds the first as an
// [*Error], and [errors.Is] matches any.
type Errors []*Error

// Error describes all mistakes in words for the client.
func (l Errors) Error() string {
	sentences := make([]string, len(l))
	for i, e := range l {
		sentences[i] = e.sentence()
	}
	return "params: " + strings.Join(sentences, "; ")
}

// Unwrap returns the single errors.
func (l Errors) Unwrap() []error {
	all := make([]error, len(l))
	for i, e := range l {
		all[i] = e
	}
	return all
}

// Problem does what [Error.Problem] does for several errors. The status is that of the first error about a
// whole request (408, 413, 414 or 415), otherwise 400 if a value is missing or malformed, otherwise 422.
func (l Errors) Problem() (status int, members map[string]any) {
	entries := make([]map[string]string, len(l))
	members = map[string]any{"detail": strconv.Itoa(len(l)) + " parameters are invalid"}
	if len(l) == 1 {
		members["detail"] = l[0].sentence()
	}
	if len(l) != 1 || l[0].Name != "" {
		members["errors"] = entries
	}
	status = http.StatusUnprocessableEntity
	for i, e := range l {
		entries[i] = e.listEntry()
		if len(e.accepted) > 0 && members["accepted"] == nil {
			members["accepted"] = e.accepted
		}
		isDecided := status != http.StatusUnprocessableEntity && status != http.StatusBadRequest
		if s := e.status(); !isDecided && s != http.StatusUnprocessableEntity {
			status = s
		}
	}
	return status, members
}

// asError returns nil if l is empty, and a single error as itself.
func (l Errors) asError() error {
	switch len(l) {
	case 0:
		return nil
	case 1:
		return l[0]
	}
	return l
}

func (l Errors) full() bool { return len(l) >= maxErrors }

// note adds a mistake unless l is full.
func (l *Errors) note(e *Error) {
	if !l.full() {
		*l = append(*l, e)
	}
}

// add notes the client's mistakes in err and in the errors that err wraps. It returns the first error that is not a mistake
// of the client, or nil.
func (l *Errors) add(err error) error {
	if option.IsNil(err) { // a validation may return a nil *Error
		return nil
	}
	switch e := err.(type) {
	case *Error:
		l.note(e)
		return nil
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if own := l.add(inner); own != nil {
				return own
			}
		}
		return nil
	}
	if inner := errors.Unwrap(err); option.IsNil(inner) || l.add(inner) != nil {
		return err
	}
	return nil
}
