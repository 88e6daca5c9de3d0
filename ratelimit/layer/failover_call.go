package layer

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"

	"github.com/lazyreq/lazyreq/ratelimit"
)

var (
	errTimeout   = errors.New("layer: the store did not answer in time")
	errAbandoned = errors.New("layer: too many calls of the store are in flight")
	errGoexit    = errors.New("layer: the store ended its goroutine")
	errPanicked  = errors.New("layer: the store panicked")
)

// reply is how a call of the store ended.
type reply struct {
	results []ratelimit.Result
	err     error
	panic   any // with errPanicked
}

// call calls the store, unless the breaker is open, and waits until the deadline.
func (f *failover) call(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if f.abandoned.Load() >= int64(f.o.MaxAbandoned) {
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
		f.abandon(replies)
	}
	outcome := f.breakerOutcome(ctx, r.err)
	report(outcome)
	switch {
	case outcome == errPanicked:
		panic(r.panic)
	case r.err == nil:
		f.observeRemaining(ops, r.results, sent)
		return r.results, nil
	case ctx.Err() != nil && !ratelimit.IsOpError(r.err):
		return nil, context.Cause(ctx)
	}
	return nil, r.err
}

// abandon leaves a call in flight.
func (f *failover) abandon(replies <-chan reply) {
	f.abandoned.Add(1)
	go func() {
		<-replies
		f.abandoned.Add(-1)
	}()
}

// breakerOutcome returns what a call means for the breaker.
func (f *failover) breakerOutcome(ctx context.Context, err error) error {
	switch {
	case err == nil, ratelimit.IsOpError(err), errors.Is(err, ratelimit.ErrKeyType): // the store works
		f.lastSuccess.Store(int64(f.now()))
		return nil
	case err == errPanicked: // even if the caller has left
	case ctx.Err() != nil:
		return errCallerLeft
	}
	f.failed.Add(1)
	cause := err // so that only a failure is allocated
	f.outage.cause.Store(&cause)
	return err
}

// callStore calls the store, and sends the reply even after a panic or [runtime.Goexit].
func (f *failover) callStore(ctx context.Context, ops []ratelimit.Op, replies chan<- reply) {
	r := reply{err: errGoexit}
	defer func() {
		if r.panic = recover(); r.panic != nil {
			r.err = errPanicked
			f.o.Logger.ErrorContext(ctx, "rate limit store panicked",
				slog.Any("panic", r.panic), slog.String("stack", string(debug.Stack())))
		}
		replies <- r
	}()
	if len(ops) > 1 {
		r.results, r.err = f.inner.Do(ctx, ops)
		return
	}
	r.results = make([]ratelimit.Result, 1)
	r.results[0], r.err = f.inner.DoOne(ctx, ops[0])
}
