// Package yield lets calls that are made at the same moment be sent together, without
// a timer.
package yield

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	maxYields = 3

	// A yield with nothing else to run takes less than a microsecond, and one that lets
	// a few goroutines join a queue a few. After busyAfter the processor has run other
	// work meanwhile, which in a busy program each yield would have to wait for.
	busyAfter = 50 * time.Microsecond

	// After a yield that took d, none is made for skipFactor times d, so that yielding
	// costs a busy program about 1 % of its time.
	skipFactor = 100
	maxSkip    = time.Second
)

// WhileGrowing yields the processor at most three times, as long as each yield makes
// size grow: goroutines that are ready to add to a queue do so now. It returns at once
// while the processor is busy, and never waits for a goroutine that is blocked.
//
// It is safe for concurrent use. What it learns of the processor counts for all callers.
func WhileGrowing(size func() int) { processor.whileGrowing(size) }

var (
	start     = time.Now()
	processor = yielder{
		now:   func() time.Duration { return time.Since(start) },
		yield: runtime.Gosched,
	}
)

// yielder holds what tests replace.
type yielder struct {
	now       func() time.Duration // monotonic
	yield     func()
	busyUntil atomic.Int64 // the processor counts as busy before this time, of now, in ns
}

func (y *yielder) whileGrowing(size func() int) {
	began := y.now()
	if began < time.Duration(y.busyUntil.Load()) {
		return
	}
	before := size()
	for range maxYields {
		y.yield()
		ended := y.now()
		if took := ended - began; took > busyAfter {
			y.busyUntil.Store(int64(ended + min(skipFactor*took, maxSkip)))
			return
		}
		after := size()
		if after <= before {
			return
		}
		began, before = ended, after
	}
}
