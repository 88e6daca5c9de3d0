//go:build !linux

package server

import (
	"fmt"
	"runtime"
	"time"

	"github.com/lazyreq/lazyreq/bench/child"
	"github.com/lazyreq/lazyreq/bench/harness"
)

var errNotLinux = fmt.Errorf("%w: the suite delays packets as Linux does it, and this is %s",
	harness.ErrMissing, runtime.GOOS)

type proxy struct{ addr string }

func startProxy(string, time.Duration, child.CPUs) (*proxy, error) { return nil, errNotLinux }

func (*proxy) close() error { return nil }
