package lazy

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
)

// errAbandoned is the cause of a computation that nobody waits for any longer.
var errAbandoned = errors.New("lazy: every waiter left")

// errNoFunc is what Get says on a zero Value that was never set.
var errNoFunc = errors.New("lazy: the value has no function and was not set")

// Value is computed once, on first use.
//
// A stand-alone value (made by [New]) keeps its first success for ever and
// forgets errors, so that the next Get tries again. It is computed under the
// values of the first caller's context; it is cancelled when the last waiter
// leaves, and whoever comes later begins anew. A value of a [Scope] (made by
// [In] or [Go]) is computed under the scope's context, whoever leaves, and keeps
// its error as well, except a cancellation that is not the scope's.
//
// The zero Value can be Set. All methods may be called concurrently; a Value
// must not be copied after first use. A Get that finds the value costs one
// atomic load and does not allocate.
type Value[T any] struct {
	fn    func(context.Context) (T, error)
	scope *Scope        // nil: stand-alone
	name  func() string // nil: the name of fn

	res atomic.Pointer[result[T]] // the kept outcome; never a panic

	mu sync.Mutex  // never held while user code runs
	at *attempt[T] // the computation that callers join: in progress, or over and its panic kept
}

type result[T any] struct {
	val T
	err error
}

// New returns a stand-alone value that fn computes on first use.
func New[T any](fn func(context.Context) (T, error)) *Value[T] {
	return &Value[T]{fn: fn}
}

// In returns a value of the scope that fn computes on first use.
func In[T any](s *Scope, fn func(context.Context) (T, error)) *Value[T] {
	return &Value[T]{fn: fn, scope: s}
}

// Go returns a value of the scope that fn begins to compute now, on a goroutine
// that the scope waits for. On a closed scope its Get returns [ErrClosed].
func Go[T any](s *Scope, fn func(context.Context) (T, error)) *Value[T] {
	v := In(s, fn)
	v.Start(s.ctx)
	return v
}

// Get returns the value, computing it first if need be. It waits until the
// computation ends or ctx does, then with [context.Cause]. A panic of the
// function is a panic of every Get that waited, with a [*PanicError]. The
// function runs on this goroutine if ctx cannot end before the value's owner
// does, else on one of its own.
func (v *Value[T]) Get(ctx context.Context) (T, error) {
	if r := v.res.Load(); r != nil {
		return r.val, r.err
	}
	return v.get(ctx)
}

// Wait is Get without the value.
func (v *Value[T]) Wait(ctx context.Context) error {
	_, err := v.Get(ctx)
	return err
}

// Peek returns the outcome if there is one to return without waiting. A kept
// panic is its *PanicError here. Peek never blocks and never panics.
func (v *Value[T]) Peek() (val T, err error, ok bool) {
	if r := v.res.Load(); r != nil {
		return r.val, r.err, true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.at != nil && v.at.panics != nil {
		return val, v.at.panics, true
	}
	return val, nil, false
}

// Start begins to compute the value, if it is neither there nor on its way, and
// returns at once. For a stand-alone value it counts as a waiter until ctx ends.
func (v *Value[T]) Start(ctx context.Context) {
	if v.res.Load() != nil || ctx.Err() != nil {
		return
	}
	claim := v.scope == nil // a scope's computation goes on without one
	a, started, _ := v.join(ctx, false, claim)
	if a == nil {
		return
	}
	if claim && ctx.Done() != nil {
		a.leaveAfter(ctx)
	}
	if started {
		a.launch()
	}
}

// startInScope is Start for a value of a scope.
func (v *Value[T]) startInScope(ctx context.Context) {
	if v.scope != nil {
		v.Start(ctx)
	}
}

// Set makes val the value. Who is waiting for a computation gets val as well,
// and what that computation returns is dropped.
func (v *Value[T]) Set(val T) {
	r := &result[T]{val: val}
	v.mu.Lock()
	a := v.at
	v.at = nil
	v.res.Store(r)
	if a != nil {
		a.settle(r, nil)
	}
	v.mu.Unlock()
	if a != nil {
		a.Release()
		a.stop()
	}
}

// Reset forgets the value: the next Get computes it anew. Who is already waiting
// gets the outcome of the computation it waits for.
func (v *Value[T]) Reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at = nil
	v.res.Store(nil)
}

// Name returns the name of the function, which is how cycles and panics call
// the value.
func (v *Value[T]) Name() string {
	if v.name != nil {
		return v.name()
	}
	return funcName(v.fn)
}

func (v *Value[T]) get(ctx context.Context) (T, error) {
	var zero T
	if ctx.Err() != nil {
		return zero, context.Cause(ctx)
	}
	inline := v.scope.outlivedBy(ctx.Done())
	a, started, r := v.join(ctx, inline, true)
	switch {
	case r != nil:
		return r.val, r.err
	case a == nil:
		return zero, errNoFunc
	default:
		return a.computeOrWait(ctx, started, inline)
	}
}

// idle says whether the value has no outcome and none is on its way.
func (v *Value[T]) idle() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at == nil && v.res.Load() == nil
}

// join returns the kept outcome, or the computation to wait for and whether it
// was begun here, for a caller with ctx. All three are zero where there is
// nothing to compute. With claim the caller counts as a waiter.
func (v *Value[T]) join(ctx context.Context, inline, claim bool) (*attempt[T], bool, *result[T]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r := v.res.Load(); r != nil {
		return nil, false, r
	}
	if v.at == nil && v.fn == nil {
		return nil, false, nil
	}
	begin := v.at == nil
	if begin {
		v.at = newAttempt(v, ctx, inline)
	}
	if claim {
		v.at.waiters++
	}
	return v.at, begin, nil
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
