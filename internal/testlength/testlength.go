// Package testlength sets how long tests run that only repeat themselves: briefly in a plain go test, and for
// the duration in the environment's LAZYREQ_TORTURE, such as 2m, in make torture.
package testlength

import (
	"os"
	"testing"
	"time"
)

const variable = "LAZYREQ_TORTURE"

// Duration returns how long a test repeats itself: the environment's duration, or short.
func Duration(tb testing.TB, short time.Duration) time.Duration {
	tb.Helper()
	if !IsLong() {
		return short
	}
	d, err := time.ParseDuration(os.Getenv(variable))
	if err != nil {
		tb.Fatalf("testlength: %s: %v", variable, err)
	}
	return d
}

// Count returns how often a test repeats itself in its short and in its long form.
func Count(short, long int) int {
	if IsLong() {
		return long
	}
	return short
}

// IsLong reports whether tests run in their long form.
func IsLong() bool { return os.Getenv(variable) != "" }
