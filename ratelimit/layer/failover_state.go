package layer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// errLeft means that the caller has left, so that the store can't be judged.
var errLeft = errors.New("layer: the caller has left")

func (f *Failover) newBreaker() *gobreaker.TwoStepCircuitBreaker[struct{}] {
	// The breaker counts a call at the time at which it began, and drops one that began
	// before its interval: with a shorter one, a call that takes a Timeout would not count.
	interval := max(time.Second, 2*f.o.Timeout)
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1, Interval: interval, BucketPeriod: interval / 10, Timeout: f.o.Retry,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			judged := c.TotalSuccesses + c.TotalFailures
			trips := int(judged) >= f.o.Calls && float64(c.TotalFailures) >= f.o.Ratio*float64(judged)
			if trips {
				f.state.counted(judged, c.TotalFailures, f.answered.Load())
			}
			return trips
		},
		OnStateChange: func(_ string, from, to gobreaker.State) { f.state.change(from, to) },
		IsExcluded:    func(err error) bool { return err == errLeft },
	})
}

// watch keeps what is to be logged of the breaker's changes, which come while it is locked.
type watch struct {
	news atomic.Bool // there is something to log

	mu            sync.Mutex
	down          bool
	givenUp       int64
	since         time.Time
	calls, failed uint32 // when it was given up
	before        int64  // answered without the store by then
	log           []func(*slog.Logger, int64)
}

// counted notes by which counts the store is given up.
func (w *watch) counted(calls, failed uint32, answered int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls, w.failed, w.before = calls, failed, answered
}

// change notes a change. That the store is tried, and fails again, is none.
func (w *watch) change(from, to gobreaker.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case from == gobreaker.StateClosed:
		w.down, w.since = true, time.Now()
		w.givenUp++
		calls, failed := w.calls, w.failed
		w.log = append(w.log, func(l *slog.Logger, _ int64) {
			l.LogAttrs(context.Background(), slog.LevelError, "the rate limit's store is given up for now",
				slog.Int("calls", int(calls)), slog.Int("failed", int(failed)))
		})
	case to == gobreaker.StateClosed:
		w.down = false
		took, before := time.Since(w.since), w.before
		w.log = append(w.log, func(l *slog.Logger, answered int64) {
			l.LogAttrs(context.Background(), slog.LevelInfo, "the rate limit's store is back",
				slog.Duration("after", took), slog.Int64("answered", answered-before))
		})
	default:
		return
	}
	w.news.Store(true)
}

// tell logs what there is, once.
func (w *watch) tell(l *slog.Logger, answered int64) {
	if !w.news.Load() {
		return
	}
	w.mu.Lock()
	log := w.log
	w.log = nil
	w.news.Store(false)
	w.mu.Unlock()
	for _, write := range log {
		write(l, answered)
	}
}

func (w *watch) get() (down bool, givenUp int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.down, w.givenUp
}
