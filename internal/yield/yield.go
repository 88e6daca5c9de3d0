// Package yield lets a queue collect calls that are made at the same moment, so that they can be sent together.
//
// A timer would delay every call, even a lone one. A yield of the processor only lets ready goroutines run, so it costs
// a lone call less than a microsecond.
package yield

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	maxYields = 3

	// A yield in which a few goroutines join a queue takes a few microseconds. A yield that takes longer than busyAfter
	// has waited for other work. Then the processor is busy, and other yields would also wait. A busy program does not
	// need yields, because calls queue while others are in flight.
	busyAfter = 50 * time.Microsecond

	// After two slow yields in a row, yields are skipped for skipFactor times the duration of the second one. So they
	// cost a busy program at most a few percent of its time. A single slow yield can be an interruption by the operating
	// system.
	skipFactor = 50
	maxSkip    = time.Second
)

// WhileGrowing yields the processor twice, and once more if size grew during the second yield, so that ready goroutines
// can add to a queue. It never waits for a blocked goroutine. It returns after a yield of more than 50 µs. After two
// such yields in a row, all calls return at once for 50 times as long, but at most for a second.
//
// WhileGrowing is safe for concurrent use. It calls size without a lock.
func WhileGrowing(size func() int) { processor.whileGrowing(size) }

var (
	start     = time.Now()
	processor = yielder{
		now:   func() time.Duration { return time.Since(start) },
		yield: runtime.Gosched,
	}
)

// yielder implements WhileGrowing with a clock and a yield that tests can replace.
type yielder struct {
	now       func() time.Duration // on a monotonic clock
	yield     func()
	slow      atomic.Bool  // the last yield took longer than busyAfter
	busyUntil atomic.Int64 // the processor counts as busy until then, in nanoseconds of now
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
