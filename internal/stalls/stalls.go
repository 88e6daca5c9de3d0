// Package stalls measures when a busy machine does not run a test, so that the test's bounds of time can
// account for it.
package stalls

import (
	"sync"
	"testing"
	"time"
)

// Watch knows the stalls of this process since its beginning. It is safe for concurrent use.
type Watch struct {
	mu    sync.Mutex
	last  time.Time // when it was last looked for stalls
	times [][2]time.Time
}

// period is how often a Watch looks, and tolerated what is no stall.
const period, tolerated = 5 * time.Millisecond, 15 * time.Millisecond

// Begin returns a Watch that ends with the test.
func Begin(tb testing.TB) *Watch {
	w := &Watch{last: time.Now()}
	stop, stopped := make(chan struct{}), make(chan struct{})
	tb.Cleanup(func() { close(stop); <-stopped })
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(period):
				w.look(time.Now())
			}
		}
	}()
	return w
}

func (w *Watch) look(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.last) > period+tolerated {
		w.times = append(w.times, [2]time.Time{w.last, now})
	}
	w.last = now
}

// Since returns how long a call took that was sent at a time and has just returned, without twice the stalls
// meanwhile: a call waits for several goroutines, and each may wait for a processor.
func (w *Watch) Since(sent time.Time) time.Duration {
	now := time.Now()
	took := now.Sub(sent)
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.last) > period+tolerated { // a stall that ends here
		took -= 2 * now.Sub(later(sent, w.last))
	}
	for i := len(w.times) - 1; i >= 0 && w.times[i][1].After(sent); i-- {
		took -= 2 * w.times[i][1].Sub(later(sent, w.times[i][0]))
	}
	return max(took, 0)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
