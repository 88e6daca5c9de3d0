package lazy

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// errAbandoned is the cause of a computation that was cancelled because every waiter left.
var errAbandoned = errors.New("lazy: every waiter left")

// Work is the computation of a [Flight].
type Work interface {
	// Name returns the name that cycles and panics show.
	Name() string
	// Compute calls the user's function and stores its result, without publishing it. ctx is the flight.
	Compute(ctx context.Context)
	// Finish publishes the result with [Flight.Complete]. abnormal is nil if Compute returned. Otherwise, it is a
	// [*PanicError], [ErrGoexit], or [ErrClosed] if the scope was closed before Compute began. Finish must not panic.
	Finish(abnormal error)
}

// Flight is one computation: its context, its waiters, its outcome, and the computations that it waits for. It is
// embedded in the type that implements its [Work], so that a computation needs only one allocation.
//
// Init must be called first, and Start exactly once. The other methods are safe for concurrent use. A Flight must not
// be copied or reused.
type Flight struct {
	context.Context
	work   Work
	scope  *Scope                  // waits for the computation; may be nil
	cancel context.CancelCauseFunc // called when every waiter has left; nil if the computation has an owner

	several bool // Compute loads several keys of a Batch; set before it waits for anything

	complete  atomic.Bool // outcome is set, and does not change any more
	abandoned atomic.Bool // every waiter has left, and the computation is cancelled; set under mu
	outcome   any

	mu      sync.Mutex
	waiters int           // callers that have joined and not left; only a Value counts them
	done    chan struct{} // closed by Complete; made by the first Wait
	edges   []waitEdge    // the waits of this computation for others
	buf     [1]waitEdge   // holds the only edge without an allocation
}

type flightKey struct{}

// Current returns the innermost computation from whose context ctx was derived, or nil.
func Current(ctx context.Context) *Flight {
	f, _ := ctx.Value(flightKey{}).(*Flight)
	return f
}

// Init prepares f to compute work under ctx. When scope closes, it waits for the computation. scope may be nil, and ctx
// need not be its context.
func (f *Flight) Init(ctx context.Context, scope *Scope, work Work) {
	f.Context, f.scope, f.work = ctx, scope, work
}

// Work returns the computation.
func (f *Flight) Work() Work { return f.work }

// Value returns f itself to [Current], and otherwise the value of f's context.
func (f *Flight) Value(key any) any {
	if _, ok := key.(flightKey); ok {
		return f
	}
	return f.Context.Value(key)
}

// join adds a waiter, which then calls Wait. If f was abandoned, join adds no waiter and reports false.
func (f *Flight) join() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.abandoned.Load() {
		return false
	}
	f.waiters++
	return true
}

// Start runs Compute and then Finish. If inline is true, Start runs them on this goroutine while caller waits. caller
// is the [Current] flight of the goroutine, or nil. Otherwise, Start starts a new goroutine. Start returns normally
// even if Compute panics. If the scope is closed, Start only calls Finish.
func (f *Flight) Start(caller *Flight, inline bool) {
	switch {
	case f.scope != nil && !f.scope.enter():
		f.work.Finish(ErrClosed)
	case inline:
		f.run(caller)
	default:
		go f.run(nil)
	}
}

func (f *Flight) run(caller *Flight) {
	if caller != nil {
		caller.addEdge(waitEdge{f, true})
	}
	abnormal := ErrGoexit
	defer func() {
		if v := recover(); v != nil {
			abnormal = NewPanicError(f.work.Name(), v)
		}
		if caller != nil {
			caller.removeEdge(waitEdge{f, true})
		}
		f.work.Finish(abnormal)
		if f.scope != nil {
			f.scope.exit()
		}
	}()
	f.work.Compute(f)
	abnormal = nil
}

// Complete gives outcome to all waiters, unless f is already complete. It reports whether any caller that has joined
// gets this outcome.
func (f *Flight) Complete(outcome any) (delivered bool) {
	f.mu.Lock()
	if !f.complete.Load() {
		f.outcome = outcome
		f.complete.Store(true)
		delivered = f.waiters > 0
		if f.done != nil {
			close(f.done)
		}
	}
	f.mu.Unlock()
	if f.cancel != nil {
		f.cancel(nil)
	}
	return delivered
}

// Wait returns f's outcome to a waiter on behalf of caller, the [Current] flight of ctx. If ctx ends first, Wait
// returns [context.Cause]. If f waits for caller, directly or not, Wait returns a [*CycleError] at once.
func (f *Flight) Wait(ctx context.Context, caller *Flight) (any, error) {
	if f.complete.Load() {
		return f.outcome, nil
	}
	done := f.doneChan()
	if caller != nil {
		// The edge is added before the search. If several waits close a cycle together, the last one to add its edge
		// finds all the others.
		caller.addEdge(waitEdge{f, false})
		defer caller.removeEdge(waitEdge{f, false})
		if path := f.pathTo(caller, nil); path != nil {
			if err := newCycleError(path); f.leave() {
				return nil, err
			}
		}
	}
	select {
	case <-done:
	case <-ctx.Done():
		if err := context.Cause(ctx); f.leave() { // in this order: Cause may call a method of ctx
			return nil, err
		}
	}
	return f.outcome, nil
}

// leave removes a waiter. It reports false if f already has an outcome, which the waiter then must use. When the last
// waiter leaves a computation without an owner, the computation is cancelled and cannot be joined any more.
func (f *Flight) leave() bool {
	f.mu.Lock()
	if f.complete.Load() {
		f.mu.Unlock()
		return false
	}
	f.waiters--
	abandoned := f.waiters == 0 && f.cancel != nil
	f.abandoned.Store(abandoned)
	f.mu.Unlock()
	if abandoned {
		f.cancel(errAbandoned)
	}
	return true
}

// doneChan returns the channel that Complete closes.
func (f *Flight) doneChan() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done == nil {
		f.done = make(chan struct{})
		if f.complete.Load() {
			close(f.done)
		}
	}
	return f.done
}
