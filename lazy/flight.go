package lazy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// errAbandoned is the cause of a computation that was cancelled because every waiter left.
var errAbandoned = errors.New("lazy: every waiter left")

// Work is what a [Flight] computes.
type Work interface {
	// Name returns the name that cycles and panics show.
	Name() string
	// Compute calls the user's function and keeps its result, without publishing it.
	// ctx is the flight.
	Compute(ctx context.Context)
	// Finish publishes the result by [Flight.Complete]. abnormal is nil if Compute
	// returned; otherwise it is a [*PanicError], [ErrGoexit], or [ErrClosed] if the
	// scope was closed before Compute began. Finish must not panic.
	Finish(abnormal error)
}

// Flight is one computation in progress: its context, its waiters, its outcome, and
// the computations that it waits for itself. It is embedded in the type that
// implements its [Work], so that a computation is one allocation.
//
// Init comes first, and Start exactly once. All other methods are safe for
// concurrent use. A Flight must not be copied or reused.
type Flight struct {
	context.Context
	work   Work
	scope  *Scope                  // waits for the computation; may be nil
	cancel context.CancelCauseFunc // called when every waiter has left; nil if the computation has an owner and goes on

	several bool // Compute is for several keys of a Batch; set before it waits for anything

	complete  atomic.Bool // outcome is set, and does not change any more
	abandoned bool        // every waiter left, and the computation is cancelled; guarded by mu
	outcome   any

	mu      sync.Mutex
	waiters int           // that joined and have not left; only a Value counts them
	done    chan struct{} // closed by Complete; made by the first Wait
	edges   []waitEdge    // what this computation waits for, one for each wait
	buf     [1]waitEdge   // the backing of edges while there is only one
}

type flightKey struct{}

// Current returns the innermost computation that ctx was passed down from, or nil.
func Current(ctx context.Context) *Flight {
	f, _ := ctx.Value(flightKey{}).(*Flight)
	return f
}

// Init prepares f to compute work under ctx. scope, which may be nil, waits for the
// computation when it closes; ctx need not be its context.
func (f *Flight) Init(ctx context.Context, scope *Scope, work Work) {
	f.Context, f.scope, f.work = ctx, scope, work
}

// Work returns what f computes.
func (f *Flight) Work() Work { return f.work }

// Value returns f itself to [Current], and otherwise the value of f's context.
func (f *Flight) Value(key any) any {
	if _, ok := key.(flightKey); ok {
		return f
	}
	return f.Context.Value(key)
}

// join adds a waiter, which then calls Wait. It reports false, and adds none, if f was
// abandoned.
func (f *Flight) join() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.abandoned {
		f.waiters++
	}
	return !f.abandoned
}

// Start computes: inline, while caller waits, which is the [Current] flight of this goroutine or
// nil; or else on a new goroutine. It returns normally even if Compute panics. If the scope is
// closed, Start only calls Finish.
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

// Complete makes outcome what all waiters get, unless they have an outcome already. It
// reports whether there are waiters that have joined and get this one.
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

// Wait returns f's outcome to a waiter on behalf of caller, the [Current] flight of ctx.
// The waiter leaves with [context.Cause] when ctx ends first, and with a [*CycleError] at
// once if f, directly or not, waits for caller.
func (f *Flight) Wait(ctx context.Context, caller *Flight) (any, error) {
	if f.complete.Load() {
		return f.outcome, nil
	}
	done := f.doneChan()
	if caller != nil {
		// The edge is added before the search: of several waits that close a cycle
		// together, the last to add its edge finds all the others.
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

// leave removes a waiter, unless the outcome is there: then the waiter has to take it.
// When the last waiter leaves a computation without an owner, no later caller can join
// it, and it is cancelled.
func (f *Flight) leave() bool {
	f.mu.Lock()
	if f.complete.Load() {
		f.mu.Unlock()
		return false
	}
	f.waiters--
	f.abandoned = f.waiters == 0 && f.cancel != nil
	abandoned := f.abandoned
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

// isAbandoned reports whether f can no longer be joined.
func (f *Flight) isAbandoned() bool {
	if f.cancel == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.abandoned
}

// CycleError is the error of a value that needs itself. Path has the names of the
// values, from the one that was asked for to itself: user, org, user.
//
// A cycle is found when the wait that would close it begins. A function that asks for
// a value which needs its own gets the error even if it asks from a goroutine that it
// does not wait for: which of the two is first would be chance.
type CycleError struct {
	Path []string

	several bool // a computation on the path is of several keys, which may need different things
}

func newCycleError(path []*Flight) *CycleError {
	c := new(CycleError)
	for _, f := range path {
		c.Path = append(c.Path, f.work.Name())
		c.several = c.several || f.several
	}
	c.Path = append(c.Path, c.Path[0])
	return c
}

// isCycleOfSeveral reports whether err is a cycle that a computation of several keys may
// only seem to close.
func isCycleOfSeveral(err error) bool {
	c, ok := err.(*CycleError)
	return ok && c.several
}

// Error returns the path with arrows between the names.
func (c *CycleError) Error() string {
	return "lazy: cycle: " + strings.Join(c.Path, " -> ")
}

// waitEdge is one wait of a computation for another.
type waitEdge struct {
	flight *Flight
	// inline: flight runs on the goroutine that waits for it, which therefore goes on
	// when flight returns, and not when flight is completed by something else.
	inline bool
}

func (f *Flight) addEdge(e waitEdge) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.edges == nil {
		f.edges = f.buf[:0]
	}
	f.edges = append(f.edges, e)
}

func (f *Flight) removeEdge(e waitEdge) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.edges, e)
	f.edges = slices.Delete(f.edges, i, i+1)
}

// pathTo returns the flights from f to target along their edges, both included, or
// nil. One lock at a time is enough: the flights of a cycle are all blocked, so none
// of them can remove its edge meanwhile.
func (f *Flight) pathTo(target *Flight, seen map[*Flight]bool) []*Flight {
	if f == target {
		return []*Flight{f}
	}
	if seen[f] {
		return nil
	}
	f.mu.Lock()
	edges := slices.Clone(f.edges)
	f.mu.Unlock()
	if len(edges) == 0 {
		return nil
	}
	if seen == nil {
		seen = make(map[*Flight]bool)
	}
	seen[f] = true
	for _, e := range edges {
		if !e.inline && e.flight.complete.Load() {
			continue // f was woken and is about to remove this edge
		}
		if rest := e.flight.pathTo(target, seen); rest != nil {
			return append([]*Flight{f}, rest...)
		}
	}
	return nil
}
