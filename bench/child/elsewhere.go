//go:build !linux

package child

import (
	"fmt"
	"os/exec"
	"runtime"

	"github.com/lazyreq/lazyreq/bench/harness"
)

var errNotLinux = fmt.Errorf("%w: processors are divided as Linux does it, and this is %s", harness.ErrMissing, runtime.GOOS)

// AllCPUs returns an error: only on Linux can processes be kept on processors.
func AllCPUs() (CPUs, error) { return nil, errNotLinux }

// Do returns an error, too.
func (CPUs) Do(func() error) error { return errNotLinux }

func (CPUs) startOn(*exec.Cmd) error { return errNotLinux }
