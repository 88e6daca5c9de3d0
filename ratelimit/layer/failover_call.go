package layer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

var (
	errTooSlow   = errors.New("layer: the store did not answer in time")
	errAbandoned = errors.New("layer: too many calls of the store that don't end")
	errEnded     = errors.New("layer: the store ended its goroutine")
	errPanicked  = errors.New("layer: the store panicked")
)

// call is one call of the store. Its results are read once done is closed.
type call struct {
	ops     []ratelimit.Op
	alone   bool // by DoOne
	results []ratelimit.Result
	err     error
	panic   any
	done    chan struct{}
	left    atomic.Bool // by the first of the store and the caller
}

// ask asks the store, unless it is given up, and waits until the deadline.
func (f *failover) ask(ctx context.Context, ops []ratelimit.Op, one bool) ([]ratelimit.Result, error) {
	if f.abandoned.Load() >= int64(f.o.MaxAbandoned) {
		return nil, errAbandoned
	}
	report, err := f.breaker.Allow()
	if err != nil {
		return nil, err
	}
	c := &call{ops: ops, alone: one, done: make(chan struct{})}
	limited, cancel := context.WithTimeout(ctx, f.o.Timeout)
	defer cancel()
	sent := f.local.now()
	go f.run(limited, c)
	select {
	case <-c.done:
		err = c.err
	case <-limited.Done():
		err = f.leave(c)
	}
	outcome := f.judge(ctx, c, err)
	report(outcome)
	f.state.tell(f.o.Logger, f.answered.Load())
	switch {
	case outcome == errPanicked:
		panic(c.panic)
	case err == nil:
		f.local.learn(f, ops, c.results, sent)
		return c.results, nil
	case ctx.Err() != nil && !ofOps(err):
		return nil, context.Cause(ctx)
	}
	return nil, err
}

// leave leaves the call to itself, if the store has not answered in the last moment.
func (f *failover) leave(c *call) error {
	f.abandoned.Add(1)
	if c.left.CompareAndSwap(false, true) {
		return errTooSlow
	}
	f.abandoned.Add(-1)
	<-c.done
	return c.err
}

// judge returns what the breaker is told of a call.
func (f *failover) judge(ctx context.Context, c *call, err error) error {
	switch {
	case err == nil, ofOps(err), errors.Is(err, ratelimit.ErrKeyType): // which is no failure of the store
		f.lastSuccess.Store(int64(time.Since(f.start)))
		return nil
	case err == errPanicked: // also if the caller has left by now
	case ctx.Err() != nil:
		return errLeft
	}
	f.failed.Add(1)
	return err
}

// run calls the store. Whatever becomes of that, it ends here.
func (f *failover) run(ctx context.Context, c *call) {
	c.err = errEnded
	defer func() {
		if c.panic = recover(); c.panic != nil {
			c.err = errPanicked
			f.o.Logger.ErrorContext(ctx, "the rate limit's store panicked",
				slog.Any("panic", c.panic), slog.String("stack", string(debug.Stack())))
		}
		if !c.left.CompareAndSwap(false, true) {
			f.abandoned.Add(-1)
		}
		close(c.done)
	}()
	if c.alone {
		var res ratelimit.Result
		res, c.err = f.one(ctx, c.ops[0])
		c.results = []ratelimit.Result{res}
		return
	}
	c.results, c.err = f.inner.Do(ctx, c.ops)
	if c.err == nil && len(c.results) != len(c.ops) {
		c.err = fmt.Errorf("%w: %d results of %d ops", ratelimit.ErrStore, len(c.results), len(c.ops))
	}
}

// ofOps tells an error that says something of the ops from one of a store that can't
// answer.
func ofOps(err error) bool {
	for _, e := range []error{
		ratelimit.ErrOp, ratelimit.ErrTooLarge, ratelimit.ErrInterval, ratelimit.ErrNoCount,
		ratelimit.ErrNoLimit, ratelimit.ErrOverflow, ratelimit.ErrNoRoom,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
