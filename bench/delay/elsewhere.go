//go:build !linux

package delay

import (
	"fmt"
	"runtime"
	"time"

	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/harness"
)

// Proxy does not exist here.
type Proxy struct{ Addr string }

// Start returns an error.
func Start(string, time.Duration, child.CPUs) (*Proxy, error) {
	return nil, fmt.Errorf("%w: the suite delays packets as Linux does it, and this is %s", harness.ErrMissing, runtime.GOOS)
}

// Close does nothing.
func (*Proxy) Close() error { return nil }
