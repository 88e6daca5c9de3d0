//go:build !linux

package server

import (
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"github.com/lazyreq/lazyreq/bench/harness"
)

var errNotLinux = fmt.Errorf("%w: the suite divides processors and delays packets as Linux does it, and this is %s",
	harness.ErrMissing, runtime.GOOS)

type cpus []int

func divide() (stack, rest cpus, err error) { return nil, nil, errNotLinux }

func (cpus) start(*exec.Cmd) error { return errNotLinux }

type proxy struct{ addr string }

func startProxy(string, time.Duration, cpus) (*proxy, error) { return nil, errNotLinux }

func (*proxy) close() error { return nil }

func (*load) run() (loaded, error) { return loaded{}, errNotLinux }
