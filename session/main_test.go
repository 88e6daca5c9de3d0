package session_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pass lets d pass on the clock of a bubble.
func pass(d time.Duration) { <-time.After(d) }
