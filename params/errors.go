package params

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/lazyreq/lazyreq/internal/option"
)

// maxErrors bounds the mistakes that are reported to a client.
const maxErrors = 50

// Errors are several mistakes of the client in one request, at most 50. errors.As finds
// the first as an [*Error], errors.Is matches any.
type Errors []*Error

// Error describes all mistakes in words for the client.
func (l Errors) Error() string { return "params: " + l.sentences() }

func (l Errors) sentences() string {
	var b strings.Builder
	for i, e := range l {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(e.sentence())
	}
	return b.String()
}

// Unwrap returns the single errors.
func (l Errors) Unwrap() []error {
	all := make([]error, len(l))
	for i, e := range l {
		all[i] = e
	}
	return all
}

// Problem returns the status of the response and the members of its RFC 9457 problem
// details, as [Error.Problem] does, with an item of "errors" for each. The status is that
// of the first error that is about more than a value (408, 413, 414, 415), else 400 if any
// value is malformed or missing, else 422.
func (l Errors) Problem() (status int, members map[string]any) {
	items := make([]map[string]string, len(l))
	members = map[string]any{"detail": strconv.Itoa(len(l)) + " parameters are invalid"}
	if len(l) == 1 {
		members["detail"] = l[0].sentence()
	}
	if len(l) != 1 || l[0].Name != "" {
		members["errors"] = items
	}
	status = http.StatusUnprocessableEntity
	for i, e := range l {
		items[i] = e.listEntry()
		if len(e.accepted) > 0 && members["accepted"] == nil {
			members["accepted"] = e.accepted
		}
		switch s := e.status(); {
		case status != http.StatusUnprocessableEntity && status != http.StatusBadRequest:
		case s != http.StatusUnprocessableEntity:
			status = s
		}
	}
	return status, members
}

// asError returns nil for none, the error itself for one.
func (l Errors) asError() error {
	switch len(l) {
	case 0:
		return nil
	case 1:
		return l[0]
	}
	return l
}

// note adds a mistake, unless l is full.
func (l *Errors) note(e *Error) {
	if !l.full() {
		*l = append(*l, e)
	}
}

func (l Errors) full() bool { return len(l) >= maxErrors }

// add notes the mistakes that err is, wraps or joins. It returns the first error in it
// that isn't the client's.
func (l *Errors) add(err error) error {
	if option.IsNil(err) { // also a nil *Error: a check may return its variable of that type
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
