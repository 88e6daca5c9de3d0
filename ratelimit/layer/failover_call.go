package layer

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/ratelimit"
)

var (
	errTimeout   = errors.New("layer: the store did not answer in time")
	errAbandoned = errors.New("layer: too many calls of the store are in flight")
	errGoexit    = errors.New("layer: the store ended its goroutine")
	errPanicked  = errors.New("layer: the store panicked")
)

// storeCall is one call of the store. Its results are read after done is closed.
type storeCall struct {
	ops     []ratelimit.Op
	results []ratelimit.Result
	err     error
	panic   any
	done    chan struct{}
	left    atomic.Bool // set by the first of the store and the caller
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
	c := &storeCall{ops: ops, done: make(chan struct{})}
	limited, cancel := context.WithTimeout(ctx, f.o.Timeout)
	defer cancel()
	sent := f.now()
	go f.callStore(limited, c)
	select {
	case <-c.done:
		err = c.err
	case <-limited.Done():
		err = f.abandon(c)
	}
	outcome := f.breakerOutcome(ctx, err)
	report(outcome)
	f.outage.log(ctx)
	switch {
	case outcome == errPanicked:
		panic(c.panic)
	case err == nil:
		f.observeRemaining(ops, c.results, sent)
		return c.results, nil
	case ctx.Err() != nil && !ratelimit.IsOpError(err):
		return nil, context.Cause(ctx)
	}
	return nil, err
}

// abandon leaves the call in flight, unless it has just ended.
func (f *failover) abandon(c *storeCall) error {
	f.abandoned.Add(1)
	if c.left.CompareAndSwap(false, true) {
		return errTimeout
	}
	f.abandoned.Add(-1)
	<-c.done
	return c.err
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

// callStore calls the store, and ends the call even after a panic or [runtime.Goexit].
func (f *failover) callStore(ctx context.Context, c *storeCall) {
	c.err = errGoexit
	defer func() {
		if c.panic = recover(); c.panic != nil {
			c.err = errPanicked
			f.o.Logger.ErrorContext(ctx, "rate limit store panicked",
				slog.Any("panic", c.panic), slog.String("stack", string(debug.Stack())))
		}
		if !c.left.CompareAndSwap(false, true) {
			f.abandoned.Add(-1)
		}
		close(c.done)
	}()
	if len(c.ops) == 1 {
		var res ratelimit.Result
		res, c.err = f.inner.DoOne(ctx, c.ops[0])
		c.results = []ratelimit.Result{res}
		return
	}
	c.results, c.err = doAll(ctx, f.inner, c.ops)
}
