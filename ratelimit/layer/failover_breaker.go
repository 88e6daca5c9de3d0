package layer

import (
	"context"
	"errors"
	"log/slog"
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
			f.outage.trip = c
			return f.shouldTrip(c)
		},
		OnStateChange: f.changeState,
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

// outage is the breaker's state for Stats and the log.
type outage struct {
	down  atomic.Bool
	count atomic.Int64
	cause atomic.Pointer[error] // of the latest failure

	// Guarded by the breaker's lock.
	trip   gobreaker.Counts // that opened the breaker
	since  time.Time
	before int64 // calls answered without the store until then
}

// changeState records that the breaker has opened or closed; half open counts as open. The breaker
// is locked meanwhile, so the log is written by another goroutine.
func (f *failover) changeState(_ string, from, to gobreaker.State) {
	o, level, message := &f.outage, slog.LevelError, "rate limit store is down: circuit breaker opened"
	var attrs []slog.Attr
	switch {
	case from == gobreaker.StateClosed:
		o.down.Store(true)
		o.count.Add(1)
		o.since, o.before = time.Now(), f.answered.Load()
		attrs = []slog.Attr{
			slog.Int("calls", int(o.trip.TotalSuccesses+o.trip.TotalFailures)), slog.Int("failed", int(o.trip.TotalFailures)),
			slog.Int("consecutive_failures", int(o.trip.ConsecutiveFailures)), slog.String("error", (*o.cause.Load()).Error()),
		}
	case to == gobreaker.StateClosed:
		o.down.Store(false)
		level, message = slog.LevelInfo, "rate limit store is back: circuit breaker closed"
		attrs = []slog.Attr{slog.Duration("after", time.Since(o.since)), slog.Int64("answered", f.answered.Load()-o.before)}
	default:
		return
	}
	go f.o.Logger.LogAttrs(context.Background(), level, message, attrs...)
}
