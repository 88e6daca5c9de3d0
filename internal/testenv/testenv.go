// Package testenv tells tests about their environment: whether the race detector is on, which programs are installed,
// when the machine was busy, and how long tests that repeat themselves run. Such tests are short in a plain go test. In
// make torture, they run for the duration in LAZYREQ_TORTURE, such as 2m.
package testenv

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

const variable = "LAZYREQ_TORTURE"

// Duration returns how long a test repeats itself: for the duration in LAZYREQ_TORTURE, or else for short.
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

// LookPath returns the path of the first of these programs that is installed. If no program is installed, the test is
// skipped, or fails with CI=true.
func LookPath(tb testing.TB, names ...string) string {
	tb.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		tb.Fatalf("testenv: %s is not installed, and CI needs it", names[0])
	}
	tb.Skipf("%s is not installed", names[0])
	return ""
}
