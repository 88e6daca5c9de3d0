package proxy

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns what all threads of a process have used of processors, in
// nanoseconds, which its getrusage, in ticks, is rounded from.
func processorTime(pid int) (time.Duration, error) {
	const ofProcess = 2 // CPUCLOCK_SCHED, and not CPUCLOCK_PERTHREAD_MASK
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|ofProcess), &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}
