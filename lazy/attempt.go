package lazy

import (
	"context"
	"errors"
)

// attempt is one computation of a Value. The value joins callers to it until it
// is over, abandoned, or overtaken by Set or Reset; to one whose panic is kept,
// for good.
type attempt[T any] struct {
	Flight
	v      *Value[T]
	raw    *result[T]              // what the function returned; apart, so that keeping it keeps nothing else alive
	cancel context.CancelCauseFunc // nil where it cannot be abandoned

	// Guarded by v.mu.
	waiters int           // who is going to be told the outcome, and Start's claims on a stand-alone value
	stops   []func() bool // Start's watches on their contexts
	settled bool          // out and panics are final

	// Written once, before the flight is released.
	out    *result[T]
	panics *PanicError
}

// newAttempt returns a computation of v that begins for a caller with ctx. The
// caller holds v.mu, and nothing of ctx is called: WithoutCancel stands between.
func newAttempt[T any](v *Value[T], ctx context.Context, inline bool) *attempt[T] {
	a := &attempt[T]{v: v}
	switch {
	case v.scope != nil:
		ctx = v.scope.ctx
	case !inline:
		ctx, a.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	}
	a.Init(ctx, v.scope, a)
	return a
}

func (a *attempt[T]) Name() string { return a.v.Name() }

func (a *attempt[T]) Compute(ctx context.Context) {
	val, err := a.v.fn(ctx)
	a.raw = &result[T]{val, err}
}

// Finish settles the attempt and, if the value still wants it, keeps what is to
// be kept.
func (a *attempt[T]) Finish(abnormal error) {
	p, _ := abnormal.(*PanicError)
	if abnormal != nil {
		a.raw = &result[T]{err: abnormal}
	}
	keep := a.keeps(a.raw.err)
	v := a.v
	v.mu.Lock()
	a.settle(a.raw, p)
	switch {
	case v.at != a: // nobody wants it for the value any longer
	case !keep:
		v.at = nil
	case p == nil:
		v.at = nil
		v.res.Store(a.out)
	default: // a kept panic stays where callers join
	}
	lost := p != nil && (a.panics != p || a.waiters == 0)
	v.mu.Unlock()
	if lost && v.scope != nil {
		v.scope.lose(p)
	}
	a.stop()
}

// keeps says whether an outcome with this error is the value's for good.
func (a *attempt[T]) keeps(err error) bool {
	if err == nil {
		return true
	}
	if a.v.scope == nil {
		return false
	}
	return !OwnCancellation(a.v.scope.ctx, err)
}

// OwnCancellation says whether err is a cancellation or a deadline that belongs
// to a single attempt and not to owner, which goes on: an outcome that must not
// be kept for the owner's life.
//
// It asks err with [errors.Is]. When a method of err panics there, the answer is
// no: the outcome is being published, and those who wait for it must get it.
func OwnCancellation(owner context.Context, err error) (own bool) {
	defer func() {
		if recover() != nil {
			own = false
		}
	}()
	return (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) && owner.Err() == nil
}

// settle fixes the outcome, unless it is fixed. The caller holds v.mu.
func (a *attempt[T]) settle(r *result[T], p *PanicError) {
	if !a.settled {
		a.settled, a.out, a.panics = true, r, p
	}
}

// deliver hands out the outcome, to those who know that it is final.
func (a *attempt[T]) deliver() (T, error) {
	if a.panics != nil {
		if a.v.scope != nil {
			a.v.scope.found(a.panics)
		}
		a.panics.Raise()
	}
	return a.out.val, a.out.err
}

// computeOrWait returns a's outcome to a caller with ctx that has joined a: the caller
// that started it computes, if inline on its own goroutine, and the others wait.
func (a *attempt[T]) computeOrWait(ctx context.Context, started, inline bool) (T, error) {
	caller := Current(ctx)
	switch {
	case !started:
	case !inline:
		a.launch()
	case a.Run(caller):
		return a.deliver()
	default:
		a.abort()
	}
	if err := a.Wait(ctx, caller); err != nil && a.leave() {
		var zero T
		return zero, err
	}
	return a.deliver()
}

// launch computes on a goroutine of its own.
func (a *attempt[T]) launch() {
	if !a.Launch() {
		a.abort()
	}
}

// abort ends an attempt that cannot begin because the scope is closed.
func (a *attempt[T]) abort() {
	a.Finish(ErrClosed)
	a.Release()
}

// leave takes one waiter away, and says whether it could: once the outcome is
// final, a waiter was counted on to take it. The last one to go abandons a
// computation that has no other owner, and detaches it in the same critical
// section, so that nobody joins a computation that is about to be cancelled.
func (a *attempt[T]) leave() bool {
	a.v.mu.Lock()
	if a.settled {
		a.v.mu.Unlock()
		return false
	}
	a.waiters--
	abandoned := a.waiters == 0 && a.cancel != nil
	if abandoned && a.v.at == a {
		a.v.at = nil
	}
	a.v.mu.Unlock()
	if abandoned {
		a.cancel(errAbandoned)
	}
	return true
}

// leaveAfter takes one waiter away when ctx ends.
func (a *attempt[T]) leaveAfter(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { a.leave() })
	a.v.mu.Lock()
	over := a.settled
	if !over {
		a.stops = append(a.stops, stop)
	}
	a.v.mu.Unlock()
	if over {
		stop()
	}
}

// stop releases what a settled attempt holds: its context and its watches.
func (a *attempt[T]) stop() {
	a.v.mu.Lock()
	stops := a.stops
	a.stops = nil
	a.v.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	if a.cancel != nil {
		a.cancel(nil)
	}
}
