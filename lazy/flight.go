package lazy

import (
	"context"
	"slices"
	"sync"
)

// Work is what a [Flight] carries out.
type Work interface {
	// Name names the work in cycles and panics.
	Name() string
	// Compute calls the user's function and keeps what it returns, without
	// publishing it. ctx is the flight.
	Compute(ctx context.Context)
	// Finish publishes the outcome, before any waiter wakes. abnormal is nil
	// when Compute returned, else a [*PanicError] or [ErrGoexit]. It must not
	// panic: those who wait would do so for ever.
	Finish(abnormal error)
}

// Flight is one computation in progress: the context that the computation
// gets, those who wait for it, and what it waits for itself. It is embedded in
// the value that implements its [Work], so that a computation is one allocation.
//
// Init comes first, then Run or Launch exactly once; all other methods may be
// called concurrently. A Flight must not be copied or used again.
type Flight struct {
	context.Context
	work  Work
	scope *Scope // waits for the computation; may be nil

	mu       sync.Mutex
	released bool          // Release was called
	done     chan struct{} // closed by Release; made by the first who waits
	blocked  []*Flight     // the computations that wait for it
	needs    []need        // what holds this computation up, once for each of its waits
	buf      [1]need       // needs, as long as there is one at a time
}

// need is that one computation cannot go on before another does.
type need struct {
	flight *Flight
	// inline: flight runs on the goroutine that needs it, which is therefore
	// not set free by Release but only by the end of Run.
	inline bool
}

type flightKey struct{}

// Current returns the computation on whose behalf ctx travels: the innermost
// function of a lazy value that was given ctx or an ancestor of it. It returns
// nil outside of any.
func Current(ctx context.Context) *Flight {
	f, _ := ctx.Value(flightKey{}).(*Flight)
	return f
}

// Init prepares f to carry out work under ctx, whose cancellation and values
// the computation sees. The scope, which may be nil, waits for the computation when
// it closes; ctx need not be its context.
func (f *Flight) Init(ctx context.Context, scope *Scope, work Work) {
	f.Context, f.scope, f.work = ctx, scope, work
}

// Work returns what f carries out.
func (f *Flight) Work() Work { return f.work }

// Value makes f findable by [Current] from every context derived from it.
func (f *Flight) Value(key any) any {
	if _, ok := key.(flightKey); ok {
		return f
	}
	return f.Context.Value(key)
}

// Run computes on this goroutine, publishes the outcome and wakes those who
// wait. caller is the flight that is held up meanwhile, the [Current] one of
// whoever runs f in place of waiting for it, or nil. Run returns normally also
// after a panic, whose [*PanicError] the work's Finish was given. It does nothing
// and returns false if the scope is closed.
func (f *Flight) Run(caller *Flight) bool {
	if !f.enter() {
		return false
	}
	f.run(caller)
	return true
}

// Launch is Run on a goroutine of its own, without waiting for it.
func (f *Flight) Launch() bool {
	if !f.enter() {
		return false
	}
	go f.run(nil)
	return true
}

func (f *Flight) run(caller *Flight) {
	caller.add(need{f, true})
	returned := false
	defer func() {
		var abnormal error
		if v := recover(); v != nil {
			abnormal = NewPanicError(f.work.Name(), v)
		} else if !returned {
			abnormal = ErrGoexit
		}
		caller.remove(need{f, true})
		f.work.Finish(abnormal)
		f.Release()
		if f.scope != nil {
			f.scope.exit()
		}
	}()
	f.work.Compute(f)
	returned = true
}

func (f *Flight) enter() bool { return f.scope == nil || f.scope.enter() }

// Release wakes those who wait. Run does it at the end; a work that learns of
// its outcome earlier (a value that was set meanwhile) may do it before. It may
// be called more than once.
func (f *Flight) Release() {
	f.mu.Lock()
	if f.released {
		f.mu.Unlock()
		return
	}
	f.released = true
	if f.done != nil {
		close(f.done)
	}
	blocked := f.blocked
	f.blocked = nil
	f.mu.Unlock()
	for _, g := range blocked {
		g.remove(need{f, false})
	}
}

// Wait blocks until f is released, on behalf of caller, the [Current] flight of
// ctx. It returns [context.Cause] when ctx ends first, and a [*CycleError] at
// once when f, directly or not, is waiting for the caller.
func (f *Flight) Wait(ctx context.Context, caller *Flight) error {
	done := f.doneChan(caller)
	if done == nil {
		return nil
	}
	if caller != nil {
		// The edge is there before the search. Of several waits that close
		// a cycle together, the last to add its edge finds all the others.
		caller.add(need{f, false})
		defer caller.remove(need{f, false})
		if path := f.pathTo(caller, nil); path != nil && !f.over() {
			return newCycleError(path)
		}
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// doneChan returns what to wait on and notes that caller does, or nil if f has
// is released.
func (f *Flight) doneChan(caller *Flight) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.released {
		return nil
	}
	if f.done == nil {
		f.done = make(chan struct{})
	}
	if caller != nil {
		f.blocked = append(f.blocked, caller)
	}
	return f.done
}

// over says whether f was released.
func (f *Flight) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.released
}

// add notes what f's computation needs.
func (f *Flight) add(n need) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.needs == nil {
		f.needs = f.buf[:0]
	}
	f.needs = append(f.needs, n)
}

// remove takes back one need, if it is still there.
func (f *Flight) remove(n need) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.Index(f.needs, n); i >= 0 {
		f.needs = slices.Delete(f.needs, i, i+1)
	}
}
