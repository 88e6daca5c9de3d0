package lazy

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
)

// errNoFunc is the error of a zero Value that was never set.
var errNoFunc = errors.New("lazy: the value has no function and was not set")

// Value is computed once, on first use.
//
// A stand-alone value (made by [New]) keeps its first success for ever. It forgets errors, so that the next Get tries
// again. Its function gets the values of the first caller's context. It is cancelled when the last waiter leaves, and
// a later caller starts it again. A value of a [Scope] (made by [In] or [Go]) is computed under the scope's context,
// even if all waiters leave. It also keeps an error, unless that is a cancellation but the scope was not cancelled.
//
// The zero Value can be Set. A Value is safe for concurrent use and must not be copied after first use. A Get that
// finds the value costs one atomic load and does not allocate.
type Value[T any] struct {
	fn    func(context.Context) (T, error)
	scope *Scope        // nil: stand-alone
	name  func() string // nil: the name of fn

	res atomic.Pointer[result[T]] // the kept outcome

	mu     sync.Mutex      // never held while user code runs
	flight *valueFlight[T] // the computation that callers join, or nil
}

// result is an outcome of a Value.
type result[T any] struct {
	val    T
	err    error
	panics *PanicError // to be raised again for each waiter
}

// New returns a stand-alone value that fn computes on first use.
func New[T any](fn func(context.Context) (T, error)) *Value[T] { return In(nil, fn) }

// In returns a value of the scope that fn computes on first use.
func In[T any](s *Scope, fn func(context.Context) (T, error)) *Value[T] {
	return &Value[T]{fn: fn, scope: s}
}

// Go returns a value of the scope and begins to compute it with fn now, on a goroutine that the scope waits for. If
// the scope is closed, the value's Get returns [ErrClosed].
func Go[T any](s *Scope, fn func(context.Context) (T, error)) *Value[T] {
	v := In(s, fn)
	if w := v.join(s.ctx, false, false); w.start {
		w.flight.Start(nil, false)
	}
	return v
}

// Get returns the value, computing it first if necessary. If ctx ends before the computation, Get returns
// [context.Cause]. If the function panics, every Get that waits for it panics with a [*PanicError]. The function runs
// on this goroutine if ctx cannot end before the value's owner does, and otherwise on a new one.
func (v *Value[T]) Get(ctx context.Context) (T, error) {
	if r := v.res.Load(); r != nil && r.panics == nil {
		return r.val, r.err
	}
	return v.get(ctx)
}

func (v *Value[T]) get(ctx context.Context) (val T, err error) {
	if ctx.Err() != nil {
		return val, context.Cause(ctx)
	}
	caller, inline := Current(ctx), v.scope.outlivedBy(ctx) // before join: they call methods of ctx
	r, err := v.join(ctx, inline, true).wait(ctx, caller, inline)
	if err != nil {
		return val, err
	}
	if r.panics != nil {
		r.panics.Raise()
	}
	return r.val, r.err
}

// Wait is like Get but returns only the error.
func (v *Value[T]) Wait(ctx context.Context) error {
	_, err := v.Get(ctx)
	return err
}

// Peek returns the outcome, and reports whether there is one. It never blocks. A kept panic is returned as a
// *PanicError.
func (v *Value[T]) Peek() (val T, err error, ok bool) {
	if r := v.res.Load(); r != nil {
		return r.val, r.err, true
	}
	return val, nil, false
}

// Set makes val the value. Callers that are waiting get val, too. The result of a computation in progress is dropped.
func (v *Value[T]) Set(val T) {
	r := &result[T]{val: val}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.res.Store(r)
	if v.flight != nil {
		v.flight.Complete(r)
		v.flight = nil
	}
}

// Reset forgets the value, so that the next Get computes it again. Callers that are waiting get the outcome of the
// computation that they wait for.
func (v *Value[T]) Reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.flight = nil
	v.res.Store(nil)
}

// Name returns the name of the function, which cycles and panics show.
func (v *Value[T]) Name() string {
	if v.name != nil {
		return v.name()
	}
	return funcName(v.fn)
}

// joinPresent returns the kept outcome, or else the computation in progress. It adds the caller to the waiters of the
// computation if wait is true. v.mu is held.
func (v *Value[T]) joinPresent(wait bool) (w valueWait[T], ok bool) {
	if r := v.res.Load(); r != nil {
		return valueWait[T]{kept: r}, true
	}
	f := v.flight
	return valueWait[T]{flight: f}, f != nil && (!wait || f.join())
}

// join is like joinPresent, but begins a computation if there is none. ctx is the caller's context.
func (v *Value[T]) join(ctx context.Context, inline, wait bool) valueWait[T] {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w, ok := v.joinPresent(wait); ok {
		return w
	}
	if v.fn == nil {
		return valueWait[T]{kept: &result[T]{err: errNoFunc}}
	}
	f := &valueFlight[T]{v: v}
	switch {
	case v.scope != nil:
		ctx = v.scope.ctx
	case !inline: // WithoutCancel keeps the methods of ctx from being called under the lock
		ctx, f.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	}
	f.Init(ctx, v.scope, f)
	if wait {
		f.waiters = 1
	}
	v.flight = f
	return valueWait[T]{flight: f, start: true}
}

// funcName returns the name of a function in the program.
func funcName(fn any) string {
	if v := reflect.ValueOf(fn); !v.IsNil() {
		if f := runtime.FuncForPC(v.Pointer()); f != nil {
			return f.Name()
		}
	}
	return "value"
}

// valueFlight is one computation of a Value. Callers join it until it is complete or abandoned, or until Set or Reset
// overtakes it.
type valueFlight[T any] struct {
	Flight
	v      *Value[T]
	result *result[T] // a separate allocation: a kept result must not keep the first caller's context
}

// valueWait is a caller's wait for a Value.
type valueWait[T any] struct {
	kept   *result[T]      // the outcome, if it is there
	flight *valueFlight[T] // otherwise the computation
	start  bool            // the caller has to start flight
}

// wait returns the outcome on behalf of caller, the [Current] flight of ctx. Its errors are those of [Flight.Wait].
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

// Finish completes the computation and, unless it was overtaken or abandoned, keeps its outcome.
func (f *valueFlight[T]) Finish(abnormal error) {
	if abnormal != nil {
		p, _ := abnormal.(*PanicError)
		f.result = &result[T]{err: abnormal, panics: p}
	}
	v, r := f.v, f.result
	keep := r.err == nil || v.scope != nil && !OwnCancellation(v.scope.ctx, r.err)
	v.mu.Lock()
	if v.flight == f {
		v.flight = nil
		if keep && !f.abandoned.Load() {
			v.res.Store(r)
		}
	}
	delivered := f.Complete(r)
	v.mu.Unlock()
	if r.panics != nil && !delivered && v.scope != nil {
		v.scope.addError(r.panics)
	}
}

// OwnCancellation reports whether err is a cancellation or a deadline of a single attempt, while owner goes on. Such
// an outcome must not be kept. If a method of err panics, it returns false, so that the waiters get err.
func OwnCancellation(owner context.Context, err error) (own bool) {
	defer func() {
		if recover() != nil {
			own = false
		}
	}()
	return (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) && owner.Err() == nil
}
