package option

import (
	"errors"
	"strings"
)

// WithText returns an error that wraps errs and has the text instead of theirs.
func WithText(text string, errs ...error) error { return &wrapped{text, errors.Join(errs...)} }

// Prefix returns an error that wraps err. Its text is prefix and the text of err, without the name of err's
// package pkg at the beginning.
func Prefix(prefix, pkg string, err error) error {
	return &wrapped{prefix + strings.TrimPrefix(err.Error(), pkg+": "), err}
}

type wrapped struct {
	text string
	err  error
}

func (w *wrapped) Error() string { return w.text }
func (w *wrapped) Unwrap() error { return w.err }
