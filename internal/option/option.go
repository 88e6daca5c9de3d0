// Package option checks the options of constructors and the names of policies, and makes the texts of errors.
package option

import (
	"fmt"
	"reflect"
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

// MaxDuration is the longest duration an option may have, so that sums of durations and
// times don't overflow.
const MaxDuration = 100 * 365 * 24 * time.Hour

// MaxCount is the largest number an option may have for a table's or a queue's size.
const MaxCount = 1 << 30

// Duration returns an [*Error] if d is not between min and [MaxDuration].
func Duration(pkg, field string, d, min time.Duration) error {
	if d < min || d > MaxDuration {
		return Errorf(pkg, field, "is %v, want %v to %v", d, min, MaxDuration)
	}
	return nil
}

// Count returns an [*Error] if n is not between min and [MaxCount].
func Count(pkg, field string, n, min int) error {
	if n < min || n > MaxCount {
		return Errorf(pkg, field, "is %d, want %d to %d", n, min, MaxCount)
	}
	return nil
}

// IsNil reports whether v is nil, or a nil pointer or function, such as the store of a constructor
// whose error was ignored.
func IsNil(v any) bool {
	p := reflect.ValueOf(v)
	return v == nil || (p.Kind() == reflect.Pointer || p.Kind() == reflect.Func) && p.IsNil()
}
