//go:build !linux

package proxy

import (
	"errors"
	"time"
)

var errNotLinux = errors.New("proxy: this is not Linux")

func processorTime(int) (time.Duration, error) { return 0, errNotLinux }

func playUpstream([]byte) error { return errNotLinux }

func childPIDs(int) ([]int, error) { return nil, errNotLinux }
