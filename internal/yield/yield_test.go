package yield

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fake is a yielder with a fake clock. Each yield lasts for takes, and yield number i adds adds[i] items to the queue.
type fake struct {
	yielder
	clock  time.Duration
	takes  time.Duration
	adds   []int
	size   int
	yields int
}

func newFake(takes time.Duration, adds ...int) *fake {
	f := &fake{takes: takes, adds: adds, size: 1}
	f.now = func() time.Duration { return f.clock }
	f.yield = func() {
		f.clock += f.takes
		if f.yields < len(f.adds) {
			f.size += f.adds[f.yields]
		}
		f.yields++
	}
	return f
}

// run returns how many yields one call makes.
func (f *fake) run() int {
	before := f.yields
	f.whileGrowing(func() int { return f.size })
	return f.yields - before
}

func TestYieldsWhileTheQueueGrows(t *testing.T) {
	for _, c := range []struct {
		name string
		adds []int
		want int
	}{
		{"nothing came", nil, 2},
		{"one came at once", []int{1, 0, 1}, 2},
		{"one came late", []int{0, 1}, 3},
		{"always more", []int{1, 1, 1, 1, 1}, maxYields},
		{"what was there was taken away", []int{0, -1, 2}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, newFake(time.Microsecond, c.adds...).run())
		})
	}
}

func TestTwoSlowYieldsAreTheLastForAWhile(t *testing.T) {
	for took, skip := range map[time.Duration]time.Duration{
		busyAfter + 1:         50 * (busyAfter + 1),
		time.Millisecond:      50 * time.Millisecond,
		40 * time.Millisecond: time.Second,
		10 * time.Hour:        time.Second,
	} {
		f := newFake(took, 1, 1, 1, 1, 1, 1)
		require.Equal(t, 1, f.run(), "%v", took)
		require.Equal(t, 1, f.run(), "%v", took)
		f.clock += skip - 1
		require.Zero(t, f.run(), "%v", took)
		f.clock++
		f.takes = busyAfter // not yet slow
		require.Equal(t, maxYields, f.run(), "%v", took)
		f.takes = took
		require.Equal(t, 1, f.run(), "%v: the first since", took)
		require.Equal(t, 1, f.run(), "%v", took)
		require.Zero(t, f.run(), "%v", took)
	}
}

func TestReadyGoroutinesRunFirst(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that all goroutines run in a single yield
	idle := yielder{now: func() time.Duration { return 0 }, yield: processor.yield}
	joined := 0
	for range 100 {
		var size atomic.Int64
		for range 10 {
			go size.Add(1)
		}
		idle.whileGrowing(func() int { return int(size.Load()) })
		if size.Load() == 10 {
			joined++
		}
	}
	require.Greater(t, joined, 50) // the scheduler sometimes uses another order
}
