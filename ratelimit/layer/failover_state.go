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

func (f *failover) newBreaker() *gobreaker.TwoStepCircuitBreaker[struct{}] {
	// The breaker counts a call at the time at which it began, and drops one that began
	// before its interval: with a shorter one, a call that takes a Timeout would not count.
	interval := max(time.Second, 2*f.o.Timeout)
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1, Interval: interval, BucketPeriod: interval / 10, Timeout: f.o.Retry,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			trips := f.trips(c)
			if trips {
				f.state.counted(c, f.answered.Load())
			}
			return trips
		},
		OnStateChange: func(_ string, from, to gobreaker.State) { f.state.change(from, to) },
		IsExcluded:    func(err error) bool { return err == errLeft },
	})
}

// trips reports whether the store is given up, after a failure.
func (f *failover) trips(c gobreaker.Counts) bool {
	judged := c.TotalSuccesses + c.TotalFailures
	if int(judged) >= f.o.Calls && float64(c.TotalFailures) >= f.o.Ratio*float64(judged) {
		return true
	}
	// When only a part of the store hangs, such as one node of a Cluster, nearly all callers
	// soon wait for that part and fail in a row, but the rest has answered in between.
	return int(c.ConsecutiveFailures) >= f.o.ConsecutiveFailures && f.sinceSuccess() >= f.o.Timeout
}

// sinceSuccess returns how long ago the last call succeeded, or the time since the start.
func (f *failover) sinceSuccess() time.Duration {
	return time.Since(f.start) - time.Duration(f.lastSuccess.Load())
}

// watch keeps what is to be logged of the breaker's changes, which come while it is locked.
type watch struct {
	news atomic.Bool // there is something to log

	mu      sync.Mutex
	down    bool
	givenUp int64
	since   time.Time
	counts  gobreaker.Counts // when it was given up
	before  int64            // answered without the store by then
	log     []func(*slog.Logger, int64)
}

// counted notes by which counts the store is given up.
func (w *watch) counted(c gobreaker.Counts, answered int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts, w.before = c, answered
}

// change notes a change. That the store is tried, and fails again, is none.
func (w *watch) change(from, to gobreaker.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case from == gobreaker.StateClosed:
		w.down, w.since = true, time.Now()
		w.givenUp++
		c := w.counts
		w.log = append(w.log, func(l *slog.Logger, _ int64) {
			l.LogAttrs(context.Background(), slog.LevelError, "the rate limit's store is given up for now",
				slog.Int("calls", int(c.TotalSuccesses+c.TotalFailures)), slog.Int("failed", int(c.TotalFailures)),
				slog.Int("consecutive_failures", int(c.ConsecutiveFailures)))
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
