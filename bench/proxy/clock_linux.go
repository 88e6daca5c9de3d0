package proxy

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns the processor time of all threads of a process, in nanoseconds, which is
// more exact than getrusage.
func processorTime(pid int) (time.Duration, error) {
	const ofProcess = 2 // CPUCLOCK_SCHED, and not CPUCLOCK_PERTHREAD_MASK
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|ofProcess), &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}
