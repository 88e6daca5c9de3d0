package lazy

import (
	"context"
	"errors"

	"golang.org/x/sync/semaphore"
)

// Parallel is how many values [All] waits for, and so computes, at a time.
const Parallel = 64

// errNothing is what Any says when it was given no value.
var errNothing = errors.New("lazy: Any of no values")

// Waiter is something to wait for: a [Value] of any type.
type Waiter interface {
	Wait(ctx context.Context) error
}

// All waits for all of ws, in parallel, at most [Parallel] at a time, and
// returns the first error that occurs. It leaves the others then: those that
// belong to a scope go on, stand-alone ones without another waiter are
// cancelled. A panic of one is a panic of All. Computations start together, so
// that what they ask of a [Batch] is usually one call.
func All(ctx context.Context, ws ...Waiter) error {
	return AllN(ctx, Parallel, ws...)
}

// AllN is [All] with n at a time; n below 1 counts as 1.
func AllN(ctx context.Context, n int, ws ...Waiter) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n = max(n, 1)
	startAll(ctx, ws[:min(n, len(ws))])
	sem := semaphore.NewWeighted(int64(n))
	ends := make(chan outcome[struct{}], len(ws))
	started := 0
	var first error
	for _, w := range ws {
		if !sem.TryAcquire(1) && sem.Acquire(ctx, 1) != nil {
			first = context.Cause(ctx)
			break
		}
		started++
		go waitFor(func() (struct{}, error) { return struct{}{}, w.Wait(ctx) }, func(o outcome[struct{}]) {
			if o.err != nil {
				cancel(o.err) // the others leave with this error as their cause
			}
			ends <- o
			sem.Release(1)
		})
	}
	var panics *PanicError
	for range started {
		o := <-ends
		if first == nil {
			first = o.err
		}
		if panics == nil {
			panics = o.panics
		}
	}
	if panics != nil {
		panics.Raise()
	}
	return first
}

// startAll starts the values that belong to scopes, one right after the other. A
// stand-alone value could fail, and forget its error, before All waits for it.
func startAll(ctx context.Context, ws []Waiter) {
	for _, w := range ws {
		if v, ok := w.(interface{ startInScope(ctx context.Context) }); ok {
			v.startInScope(ctx)
		}
	}
}

// Any waits for vs in parallel and returns the first success, or, when all have
// failed, their errors joined in order. It leaves the others as [All] does. A
// panic that comes before a success is a panic of Any.
func Any[T any](ctx context.Context, vs ...*Value[T]) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan outcome[T], len(vs))
	for i, v := range vs {
		go waitFor(func() (T, error) { return v.Get(ctx) }, func(o outcome[T]) {
			o.i = i
			ends <- o
		})
	}
	errs := make([]error, len(vs))
	var won *outcome[T]
	for range vs {
		o := <-ends
		errs[o.i] = o.err
		if won == nil && (o.err == nil || o.panics != nil) {
			won = &o
			cancel() // the others leave; when Any returns, nothing waits for them
		}
	}
	if won != nil && won.panics != nil {
		won.panics.Raise()
	}
	var zero T
	switch {
	case won != nil:
		return won.val, nil
	case len(vs) == 0:
		return zero, errNothing
	case ctx.Err() != nil:
		return zero, context.Cause(ctx)
	default:
		return zero, errors.Join(errs...)
	}
}

// outcome is how one of several waits ended.
type outcome[T any] struct {
	i      int
	val    T
	err    error
	panics *PanicError
}

// waitFor runs wait and calls end exactly once with how it ended.
func waitFor[T any](wait func() (T, error), end func(outcome[T])) {
	var o outcome[T]
	guard("wait", func() { o.val, o.err = wait() }, func(abnormal error) {
		if abnormal != nil {
			o.err = abnormal
			o.panics, _ = abnormal.(*PanicError)
		}
		end(o)
	})
}
