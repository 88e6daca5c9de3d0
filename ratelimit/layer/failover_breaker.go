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

// outage is the breaker's state for Stats and the log. The breaker is locked while it calls
// changeState, which therefore only prepares the log.
type outage struct {
	down  atomic.Bool
	count atomic.Int64
	cause atomic.Pointer[error]                 // of the latest failure
	news  atomic.Pointer[func(context.Context)] // logs the latest change, nil once it is logged

	// Guarded by the breaker's lock.
	trip   gobreaker.Counts // that opened the breaker
	since  time.Time
	before int64 // calls answered without the store until then
}

// changeState records that the breaker has opened or closed; half open counts as open.
func (f *failover) changeState(_ string, from, to gobreaker.State) {
	o, logger := &f.outage, f.o.Logger
	var news func(context.Context)
	switch {
	case from == gobreaker.StateClosed:
		o.down.Store(true)
		o.count.Add(1)
		o.since, o.before = time.Now(), f.answered.Load()
		c, cause := o.trip, o.cause.Load()
		news = func(ctx context.Context) {
			logger.LogAttrs(ctx, slog.LevelError, "rate limit store is down: circuit breaker opened",
				slog.Int("calls", int(c.TotalSuccesses+c.TotalFailures)), slog.Int("failed", int(c.TotalFailures)),
				slog.Int("consecutive_failures", int(c.ConsecutiveFailures)),
				slog.String("error", (*cause).Error()))
		}
	case to == gobreaker.StateClosed:
		o.down.Store(false)
		after, answered := time.Since(o.since), f.answered.Load()-o.before
		news = func(ctx context.Context) {
			logger.LogAttrs(ctx, slog.LevelInfo, "rate limit store is back: circuit breaker closed",
				slog.Duration("after", after), slog.Int64("answered", answered))
		}
	default:
		return
	}
	o.news.Store(&news)
}

// log logs the latest change of the state once.
func (o *outage) log(ctx context.Context) {
	if o.news.Load() == nil {
		return
	}
	if news := o.news.Swap(nil); news != nil {
		(*news)(ctx)
	}
}
