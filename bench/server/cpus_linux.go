package server

import (
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// cpus are processors.
type cpus []int

// divide gives the processors that this process may use to the stack and to all the
// rest: half each, or the only one to both.
func divide() (stack, rest cpus, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, nil, err
	}
	var all cpus
	for i := range 1024 {
		if set.IsSet(i) {
			all = append(all, i)
		}
	}
	if len(all) == 1 {
		return all, all, nil
	}
	half := len(all) / 2
	return all[:half], all[half:], nil
}

// start starts a process that runs on these processors only.
func (on cpus) start(cmd *exec.Cmd) error {
	return on.do(cmd.Start)
}

// do calls fn on a thread that runs on these processors only, which the processes
// that fn starts inherit.
func (on cpus) do(fn func() error) error {
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
