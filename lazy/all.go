package lazy

import (
	"context"
	"errors"

	"golang.org/x/sync/semaphore"
)

// Parallel is the number of values that [All] waits for, and so computes, at a time.
const Parallel = 64

// errNothing is the error of Any without values.
var errNothing = errors.New("lazy: Any was called without values")

// Waiter is a [Value] of any type, as [All] waits for it.
type Waiter interface {
	Wait(ctx context.Context) error
}

// waitEnd is the end of one of several waits.
type waitEnd struct {
	i      int
	err    error
	panics *PanicError
}

// All waits for all of ws, in parallel, at most [Parallel] at a time, and returns the
// first error that occurs. It then leaves the others: values of a scope are computed
// further, and stand-alone ones without another waiter are cancelled. A panic of one is
// a panic of All. Computations start together, so that their calls of a [Batch] usually
// become one.
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
	ends := make(chan waitEnd, len(ws))
	started := 0
	var first error
	for i, w := range ws {
		if !sem.TryAcquire(1) && sem.Acquire(ctx, 1) != nil {
			first = context.Cause(ctx)
			break
		}
		started++
		go guard("wait", func() error { return w.Wait(ctx) }, func(err error, panics *PanicError) {
			if err != nil {
				cancel(err) // the cause with which the others leave
			}
			ends <- waitEnd{i, err, panics}
			sem.Release(1)
		})
	}
	var panics *PanicError
	for range started {
		end := <-ends
		if first == nil {
			first = end.err
		}
		if panics == nil {
			panics = end.panics
		}
	}
	if panics != nil {
		panics.Raise()
	}
	return first
}

// startAll starts the values of scopes, one right after the other. A stand-alone value
// could fail, and forget its error, before All waits for it.
func startAll(ctx context.Context, ws []Waiter) {
	for _, w := range ws {
		if v, ok := w.(interface{ startInScope(ctx context.Context) }); ok {
			v.startInScope(ctx)
		}
	}
}

// Any waits for vs in parallel and returns the first success, or, if all fail, their
// errors joined in order. It leaves the others as [All] does. A panic that comes before
// a success is a panic of Any.
func Any[T any](ctx context.Context, vs ...*Value[T]) (val T, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	vals := make([]T, len(vs))
	ends := make(chan waitEnd, len(vs))
	for i, v := range vs {
		get := func() (err error) { vals[i], err = v.Get(ctx); return err }
		go guard("wait", get, func(err error, panics *PanicError) { ends <- waitEnd{i, err, panics} })
	}
	errs := make([]error, len(vs))
	var won *waitEnd
	for range vs {
		end := <-ends
		errs[end.i] = end.err
		if won == nil && (end.err == nil || end.panics != nil) {
			won = &end
			cancel() // the others leave, so that no goroutine waits when Any returns
		}
	}
	switch {
	case won != nil && won.panics != nil:
		won.panics.Raise()
	case won != nil:
		return vals[won.i], nil
	case len(vs) == 0:
		return val, errNothing
	case ctx.Err() != nil:
		return val, context.Cause(ctx)
	}
	return val, errors.Join(errs...)
}
