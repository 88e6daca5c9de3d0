package testenv

import (
	"os"
	"os/exec"
	"testing"
)

// LookPath returns the path of the first of these programs that is installed. If none is, the test is skipped, or
// fails with CI=true.
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
