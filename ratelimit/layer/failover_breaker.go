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

// errCallerLeft is an outcome that the breaker ignores.
var errCallerLeft = errors.New("layer: the caller has left")

func (f *failover) newBreaker() *gobreaker.TwoStepCircuitBreaker[struct{}] {
	// The breaker ignores a call that began more than an interval ago: with a shorter one, a
	// call that takes a Timeout would not count.
	interval := max(time.Second, 2*f.o.Timeout)
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1, Interval: interval, BucketPeriod: interval / 10, Timeout: f.o.Retry,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			trip := f.shouldTrip(c)
			if trip {
				f.outage.setCounts(c, f.answered.Load())
			}
			return trip
		},
		OnStateChange: func(_ string, from, to gobreaker.State) { f.outage.change(from, to) },
		IsExcluded:    func(err error) bool { return err == errCallerLeft },
	})
}

// shouldTrip reports whether the breaker opens after a failure.
func (f *failover) shouldTrip(c gobreaker.Counts) bool {
	calls := c.TotalSuccesses + c.TotalFailures
	if int(calls) >= f.o.Calls && float64(c.TotalFailures) >= f.o.Ratio*float64(calls) {
		return true
	}
	// When a part of the store hangs, such as one node of a Cluster, nearly all callers soon
	// wait for that part and fail in sequence; but the rest has answered in between.
	sinceSuccess := f.now() - time.Duration(f.lastSuccess.Load())
	return int(c.ConsecutiveFailures) >= f.o.ConsecutiveFailures && sinceSuccess >= f.o.Timeout
}

// outage is the breaker's state for Stats and the log. The breaker reports changes while it is
// locked, so they are logged afterwards.
type outage struct {
	changed atomic.Bool // since the state was logged

	mu       sync.Mutex
	down     bool
	logged   bool // the value of down that was logged
	count    int64
	since    time.Time
	counts   gobreaker.Counts // that opened the breaker
	answered int64            // without the store, before
}

func (o *outage) setCounts(c gobreaker.Counts, answered int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts, o.answered = c, answered
}

// change records that the breaker has opened or closed; half open counts as open.
func (o *outage) change(from, to gobreaker.State) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case from == gobreaker.StateClosed:
		o.down, o.since = true, time.Now()
		o.count++
	case to == gobreaker.StateClosed:
		o.down = false
	}
	o.changed.Store(true)
}

// log logs the state, if it has changed.
func (o *outage) log(ctx context.Context, logger *slog.Logger, answered int64) {
	if !o.changed.Load() {
		return
	}
	o.mu.Lock()
	down, c, since, before := o.down, o.counts, o.since, o.answered
	news := down != o.logged
	o.logged = down
	o.changed.Store(false)
	o.mu.Unlock()
	switch {
	case !news:
	case down:
		logger.LogAttrs(ctx, slog.LevelError, "rate limit store is down: circuit breaker opened",
			slog.Int("calls", int(c.TotalSuccesses+c.TotalFailures)), slog.Int("failed", int(c.TotalFailures)),
			slog.Int("consecutive_failures", int(c.ConsecutiveFailures)))
	default:
		logger.LogAttrs(ctx, slog.LevelInfo, "rate limit store is back: circuit breaker closed",
			slog.Duration("after", time.Since(since)), slog.Int64("answered", answered-before))
	}
}

func (o *outage) get() (down bool, count int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.down, o.count
}
