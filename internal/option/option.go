// Package option checks the options of constructors and the names of policies, and makes error texts.
package option

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Error reports an option whose value a constructor refuses.
type Error struct {
	Package string // the constructor's package, such as "layer"
	Field   string // the option, such as "LeaseOptions.Timeout"
	Reason  string // what is wrong, such as "is -1s, want 0s to 876000h0m0s"
}

func (e *Error) Error() string { return e.Package + ": " + e.Field + " " + e.Reason }

// Errorf returns an [*Error] with a formatted reason.
func Errorf(pkg, field, format string, args ...any) error {
	return &Error{Package: pkg, Field: field, Reason: fmt.Sprintf(format, args...)}
}

// MaxDuration is the longest duration of an option. Sums of such durations and times do not overflow.
const MaxDuration = 100 * 365 * 24 * time.Hour

// maxCount is the largest size of a table or a queue.
const maxCount = 1 << 30

// Duration returns an [*Error] if d is not between min and [MaxDuration].
func Duration(pkg, field string, d, min time.Duration) error {
	if d < min || d > MaxDuration {
		return Errorf(pkg, field, "is %v, want %v to %v", d, min, MaxDuration)
	}
	return nil
}

// Count returns an [*Error] if n is not between min and 2^30.
func Count(pkg, field string, n, min int) error {
	if n < min || n > maxCount {
		return Errorf(pkg, field, "is %d, want %d to %d", n, min, maxCount)
	}
	return nil
}

// IsNil reports whether v is nil or a nil pointer or function. A store is a nil pointer if the caller ignored its
// constructor's error.
func IsNil(v any) bool {
	p := reflect.ValueOf(v)
	return v == nil || (p.Kind() == reflect.Pointer || p.Kind() == reflect.Func) && p.IsNil()
}

// NameSyntax describes what [ValidName] accepts.
const NameSyntax = `1 to 64 letters, digits, "-" or "_"`

// ValidName reports whether s can be the name of a policy or a rule. Such a name is part of a property's name, of a key
// in a store and of a header field, and needs no escapes.
func ValidName(s string) bool {
	if len(s) < 1 || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// WithText returns an error with a text that wraps errs and does not show their texts.
func WithText(text string, errs ...error) error { return &wrapped{text, errors.Join(errs...)} }

// Prefix returns an error that wraps err. Its text is prefix and the text of err. If the text of err begins with its
// package pkg, this is left out.
func Prefix(prefix, pkg string, err error) error {
	return &wrapped{prefix + strings.TrimPrefix(err.Error(), pkg+": "), err}
}

type wrapped struct {
	text string
	err  error
}

func (w *wrapped) Error() string { return w.text }
func (w *wrapped) Unwrap() error { return w.err }
