// Package yield lets a queue collect the calls that are made at the same moment, so that
// they are sent together.
//
// A timer would delay every call, and one that is alone the most. A yield of the processor
// lets only those goroutines run that are ready, and so costs a lone call less than a
// microsecond.
package yield

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	maxYields = 3

	// A yield in which a few goroutines join a queue takes a few microseconds. One that
	// takes longer than busyAfter has waited behind other work: the processor is busy, and
	// the next yields would wait as well. (A busy program collects without yields, too,
	// because calls queue while others are under way.)
	busyAfter = 50 * time.Microsecond

	// After two slow yields in a row (one may be an interruption by the operating system),
	// none is made for skipFactor times as long as the second took, so that yields cost a
	// busy program some percent of its time at most.
	skipFactor = 50
	maxSkip    = time.Second
)

// WhileGrowing yields the processor twice, and once more if the second yield made size grow:
// goroutines that are ready to add to a queue do so meanwhile, and those that another processor
// has just begun. It never waits for a
// goroutine that is blocked. After a yield of more than 50 µs it returns, and after the second
// in a row so do all calls at once for 50 times as long, at most for a second.
//
// WhileGrowing is safe for concurrent use, and calls size without a lock.
func WhileGrowing(size func() int) { processor.whileGrowing(size) }

var (
	start     = time.Now()
	processor = yielder{
		now:   func() time.Duration { return time.Since(start) },
		yield: runtime.Gosched,
	}
)

// yielder is WhileGrowing with a clock and a scheduler, which tests replace.
type yielder struct {
	now       func() time.Duration // on a monotonic clock
	yield     func()
	slow      atomic.Bool  // the last yield was
	busyUntil atomic.Int64 // until when the processor counts as busy, in nanoseconds of now
}

func (y *yielder) whileGrowing(size func() int) {
	began := y.now()
	if began < time.Duration(y.busyUntil.Load()) {
		return
	}
	before := size()
	for i := range maxYields {
		y.yield()
		ended := y.now()
		took := ended - began
		if again := y.slow.Swap(took > busyAfter); took > busyAfter {
			if again {
				y.busyUntil.Store(int64(ended + min(skipFactor*took, maxSkip)))
			}
			return
		}
		after := size()
		if after <= before && i > 0 {
			return
		}
		began, before = ended, after
	}
}
