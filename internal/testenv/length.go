// Package testenv tells tests about their environment: whether the race detector is on, which programs are installed,
// and how long tests run that repeat themselves. Those are short in a plain go test. In make torture, they last for
// the duration in the environment's LAZYREQ_TORTURE, such as 2m.
package testenv

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
		tb.Fatalf("testenv: %s: %v", variable, err)
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
