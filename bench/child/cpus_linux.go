package child

import (
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// AllCPUs returns the processors that this process may use.
func AllCPUs() (CPUs, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	var all CPUs
	for i := range 1024 {
		if set.IsSet(i) {
			all = append(all, i)
		}
	}
	return all, nil
}

func (on CPUs) startOn(cmd *exec.Cmd) error { return on.Do(cmd.Start) }

// Do calls fn on a thread that runs on these processors only, which the processes
// that fn starts inherit.
func (on CPUs) Do(fn func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		var set unix.CPUSet
		for _, i := range on {
			set.Set(i)
		}
		err := unix.SchedSetaffinity(0, &set)
		if err == nil {
			err = fn()
		}
		done <- err
	}()
	return <-done
}
