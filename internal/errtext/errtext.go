// Package errtext wraps errors without repeating what their texts have in common.
package errtext

import (
	"errors"
	"strings"
)

// New returns an error that reads as text and wraps errs, whose own texts it leaves out.
func New(text string, errs ...error) error { return &wrapped{text, errors.Join(errs...)} }

// Prefix returns an error that reads as prefix and then as err, without the name of err's package
// that begins its text. It wraps err.
func Prefix(prefix, pkg string, err error) error {
	return &wrapped{prefix + strings.TrimPrefix(err.Error(), pkg+": "), err}
}

type wrapped struct {
	text string
	err  error
}

func (w *wrapped) Error() string { return w.text }
func (w *wrapped) Unwrap() error { return w.err }
