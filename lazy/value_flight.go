package lazy

import (
	"context"
	"errors"
)

// valueFlight is one computation of a Value. Callers join it until it is complete,
// abandoned, or overtaken by Set or Reset; one whose panic is kept, for good.
type valueFlight[T any] struct {
	Flight
	v      *Value[T]
	result *result[T] // of Compute; apart, so that keeping it keeps nothing else alive
}

// newValueFlight returns a computation of v for a first caller with ctx. v.mu is held,
// and no method of ctx is called: WithoutCancel stands between.
func newValueFlight[T any](v *Value[T], ctx context.Context, inline bool) *valueFlight[T] {
	f := &valueFlight[T]{v: v}
	switch {
	case v.scope != nil:
		ctx = v.scope.ctx
	case !inline:
		ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	}
	f.Init(ctx, v.scope, f)
	return f
}

// valueWait is what a caller of a Value waits for.
type valueWait[T any] struct {
	kept   *result[T]      // the outcome, if it is there
	flight *valueFlight[T] // otherwise the computation
	start  bool            // the caller has to start flight
}

// wait returns the outcome on behalf of caller, the [Current] flight of ctx. Its error is
// that of [Flight.Wait].
func (w valueWait[T]) wait(ctx context.Context, caller *Flight, inline bool) (*result[T], error) {
	if w.kept != nil {
		return w.kept, nil
	}
	if w.start {
		w.flight.Start(caller, inline)
	}
	out, err := w.flight.Wait(ctx, caller)
	if err != nil {
		return nil, err
	}
	return out.(*result[T]), nil
}

func (f *valueFlight[T]) Name() string { return f.v.Name() }

func (f *valueFlight[T]) Compute(ctx context.Context) {
	val, err := f.v.fn(ctx)
	f.result = &result[T]{val: val, err: err}
}

// Finish completes the computation and, if v still wants it, keeps its outcome.
func (f *valueFlight[T]) Finish(abnormal error) {
	if abnormal != nil {
		p, _ := abnormal.(*PanicError)
		f.result = &result[T]{err: abnormal, panics: p}
	}
	v, r := f.v, f.result
	keep := r.err == nil || v.scope != nil && !OwnCancellation(v.scope.ctx, r.err)
	v.mu.Lock()
	switch {
	case v.flight != f: // overtaken
	case !keep || f.isAbandoned():
		v.flight = nil
	case r.panics == nil:
		v.flight = nil
		v.res.Store(r)
	default: // callers go on joining a kept panic
	}
	delivered := f.Complete(r)
	v.mu.Unlock()
	if r.panics != nil && !delivered {
		v.scope.reportOrphan(r.panics)
	}
}

// OwnCancellation reports whether err is a cancellation or a deadline of a single
// attempt and not of owner, which goes on: such an outcome must not be kept for the
// owner's life.
//
// A panic in a method of err counts as false: the outcome is being published, and the
// waiters must get it.
func OwnCancellation(owner context.Context, err error) (own bool) {
	defer func() {
		if recover() != nil {
			own = false
		}
	}()
	return (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) && owner.Err() == nil
}
