package lazy

import (
	"context"
	"reflect"
	"runtime"
	"sync"
)

// Gather does in one call what several callers ask for at one moment: it collects
// their items and hands all of them to one function. There is no timer. Among the
// computations of a [Scope], the moment has come when every one of them has
// finished or is waiting inside this package: nobody is left who could still add
// an item. (A computation that waits for something else, a channel or the network,
// therefore delays the call; for the goroutine that owns the scope, which is not a
// computation, a few yields of the processor are waited.) Outside of a scope, it
// has come after one yield.
//
// The scope is that of the caller's context, so that one Gather serves any number of
// scopes at once without mixing them. All methods may be called concurrently.
type Gather[T any] struct {
	fn func(ctx context.Context, items []T) error

	mu     sync.Mutex
	rounds map[*Scope]*round[T] // those that still collect; the key nil is outside of any scope
}

// NewGather returns a Gather that calls fn with the items, in the order in which
// they came, at least one. In a scope, fn runs under the scope's context; outside,
// under the values of the first caller's, and it is cancelled when the last caller
// has left.
func NewGather[T any](fn func(ctx context.Context, items []T) error) *Gather[T] {
	return &Gather[T]{fn: fn, rounds: make(map[*Scope]*round[T])}
}

// Do adds item and waits until the function has returned, whose error it returns.
// A panic of the function is a panic of every Do of its round. When ctx ends first,
// Do leaves with its cause; the item stays where it is.
func (g *Gather[T]) Do(ctx context.Context, item T) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s, caller := ScopeOf(ctx), Current(ctx)
	r, first := g.join(ctx, s, item)
	if caller == nil || s == nil {
		runtime.Gosched() // whoever is ready to add something does so now
	}
	if first && s == nil {
		r.depart()
	}
	if err := r.Wait(ctx, caller); err != nil && r.leave() {
		return err
	}
	return r.deliver()
}

// join adds item to the round that collects, and says whether it was begun here.
func (g *Gather[T]) join(ctx context.Context, s *Scope, item T) (*round[T], bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.rounds[s]
	first := r == nil
	if first {
		r = &round[T]{g: g, scope: s}
		if s != nil {
			r.Init(s.ctx, s, r)
		} else {
			// Nothing of ctx is called under the lock: WithoutCancel stands between.
			var base context.Context
			base, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
			r.Init(base, nil, r)
		}
		r.served = true
		g.rounds[s] = r
	}
	r.items = append(r.items, item)
	r.waiters++
	if first && s != nil {
		s.gathering(r)
	}
	return r, first
}

// round is one call of a Gather's function.
type round[T any] struct {
	Flight
	g      *Gather[T]
	scope  *Scope
	cancel context.CancelCauseFunc // nil in a scope

	// Guarded by g.mu.
	items   []T // final once the round has departed
	waiters int
	settled bool // err and panics are final

	err    error
	panics *PanicError
}

// depart ends the collecting and calls the function.
func (r *round[T]) depart() {
	r.g.mu.Lock()
	if r.g.rounds[r.scope] == r {
		delete(r.g.rounds, r.scope)
	}
	r.g.mu.Unlock()
	if !r.Launch() {
		r.Finish(ErrClosed)
		r.Release()
	}
}

// Name names the function for cycles and panics.
func (r *round[T]) Name() string { return funcName(r.g.fn) }

func (r *round[T]) Compute(ctx context.Context) { r.err = r.g.fn(ctx, r.items) }

func (r *round[T]) Finish(abnormal error) {
	r.g.mu.Lock()
	if abnormal != nil {
		r.err = abnormal
		r.panics, _ = abnormal.(*PanicError)
	}
	r.settled = true
	lost := r.panics != nil && r.waiters == 0
	r.g.mu.Unlock()
	if lost && r.scope != nil {
		r.scope.lose(r.panics)
	}
	if r.cancel != nil {
		r.cancel(nil)
	}
}

// leave takes one waiter away, and says whether it could. The last one cancels a
// call that belongs to nobody else.
func (r *round[T]) leave() bool {
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	if r.settled {
		return false
	}
	r.waiters--
	if r.waiters == 0 && r.cancel != nil {
		r.cancel(errAbandoned)
	}
	return true
}

func (r *round[T]) deliver() error {
	if r.panics != nil {
		r.panics.Raise()
	}
	return r.err
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
