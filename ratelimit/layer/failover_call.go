package layer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/lazyreq/lazyreq/ratelimit"
)

var (
	errTimeout    = errors.New("layer: the store did not answer in time")
	errAbandoned  = errors.New("layer: too many calls of the store are in flight")
	errGoexit     = errors.New("layer: the store ended its goroutine")
	errCallerLeft = errors.New("layer: the caller has left") // the breaker ignores it
)

// lateTime is how long a call with a [ratelimit.Concurrent] may take after its caller has its answer.
const lateTime = 5 * time.Second

// reply is the outcome of a call of the store.
type reply struct {
	results []ratelimit.Result
	err     error
}

// call calls the store, unless the breaker is open. It waits for the reply until the deadline.
func (f *failover) call(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if f.abandoned.Load() >= maxAbandoned {
		return nil, errAbandoned
	}
	report, err := f.breaker.Allow()
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, f.o.Timeout)
	defer cancel()
	sent, replies, r := f.now(), make(chan reply, 1), reply{err: errTimeout}
	go f.callStore(limited, ops, replies)
	select {
	case r = <-replies:
	case <-limited.Done():
		f.abandoned.Add(1)
		go func() {
			f.releaseLate(limited, ops, <-replies)
			f.abandoned.Add(-1)
		}()
	}
	report(f.breakerOutcome(ctx, r.err))
	switch {
	case r.err == nil:
		f.observeRemaining(ops, r.results, sent)
		return r.results, nil
	case ctx.Err() != nil && !ratelimit.IsOpError(r.err):
		return nil, context.Cause(ctx)
	}
	return nil, r.err
}

// callStore calls the store. It sends a reply also after a panic or [runtime.Goexit].
func (f *failover) callStore(ctx context.Context, ops []ratelimit.Op, replies chan<- reply) {
	r := reply{err: errGoexit}
	defer func() {
		if p := recover(); p != nil {
			r.err = fmt.Errorf("layer: the store panicked: %v", p)
			f.o.Logger.ErrorContext(ctx, "rate limit store panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		}
		replies <- r
	}()
	if slices.ContainsFunc(ops, func(op ratelimit.Op) bool { return op.Rule.Layout().Concurrent }) {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateTime) // for releaseLate
		defer cancel()
		ctx = limited
	}
	if len(ops) > 1 {
		r.results, r.err = f.inner.Do(ctx, ops)
		return
	}
	r.results = make([]ratelimit.Result, 1)
	r.results[0], r.err = f.inner.DoOne(ctx, ops[0])
}

// releaseLate releases the units of a [ratelimit.Concurrent] that an abandoned call has taken. Nobody else has their receipts.
func (f *failover) releaseLate(ctx context.Context, ops []ratelimit.Op, r reply) {
	var releases []ratelimit.Op
	for i := range r.results {
		op, res := &ops[i], &r.results[i]
		if op.Kind == ratelimit.Take && op.Rule.Layout().Concurrent && res.Receipt.N > 0 {
			releases = append(releases, ratelimit.Op{Rule: op.Rule, Key: op.Key, Kind: ratelimit.Refund, Receipt: res.Receipt})
		}
	}
	if len(releases) > 0 {
		f.callStore(ctx, releases, make(chan reply, 1))
	}
}

// breakerOutcome returns the outcome that call reports to the breaker. nil means success. An error about the ops
// counts as success, because the store has answered.
func (f *failover) breakerOutcome(ctx context.Context, err error) error {
	switch {
	case err == nil, ratelimit.IsOpError(err), errors.Is(err, ratelimit.ErrKeyType):
		f.lastSuccess.Store(int64(f.now()))
		return nil
	case ctx.Err() != nil:
		return errCallerLeft
	}
	f.failed.Add(1)
	cause := err // a copy, so that only failures allocate memory
	f.outage.cause.Store(&cause)
	return err
}

func (f *failover) newBreaker() *gobreaker.TwoStepCircuitBreaker[struct{}] {
	// The breaker ignores calls that began more than an interval ago. So the interval must be longer than a Timeout.
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

// shouldTrip reports whether the breaker opens after a failure. If only a part of the store hangs, such as one node
// of a Cluster, most callers soon wait for that part, and their calls fail in sequence. The breaker then stays
// closed, because calls of the other parts still succeed.
func (f *failover) shouldTrip(c gobreaker.Counts) bool {
	calls := c.TotalSuccesses + c.TotalFailures
	if calls >= minCalls && float64(c.TotalFailures) >= f.o.Ratio*float64(calls) {
		return true
	}
	sinceSuccess := f.now() - time.Duration(f.lastSuccess.Load())
	return c.ConsecutiveFailures >= maxConsecutive && sinceSuccess >= f.o.Timeout
}

// outage holds the state of the breaker for Stats and the log.
type outage struct {
	down  atomic.Bool
	count atomic.Int64
	cause atomic.Pointer[error] // the latest failure

	// The fields below are guarded by the breaker's lock.
	trip   gobreaker.Counts // the counts when the breaker opened
	since  time.Time
	before int64 // the value of failover.answered when the breaker opened
}

// changeState records and logs that the breaker has opened or closed. Half open counts as open. The breaker is locked
// during changeState, so another goroutine writes to the log.
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
