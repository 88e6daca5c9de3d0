// Package storespy has two stores for tests: [Spy] records its calls, and [Func] is a function.
package storespy

import (
	"context"
	"slices"
	"sync"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// Func is a store whose methods call the function with a list of ops.
type Func func(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error)

// Do calls the function.
func (f Func) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	return f(ctx, ops)
}

// DoOne calls the function with a list that has one element.
func (f Func) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	out, err := f(ctx, []ratelimit.Op{op})
	if err != nil {
		return ratelimit.Result{}, err
	}
	return out[0], nil
}

// Call is one call of a [Spy].
type Call struct {
	Method string // DoOne or Do
	Ops    []ratelimit.Op
}

// Spy is a store that records its calls and passes them to Store. It is safe for concurrent use, but tests must not set Hold
// and Before during a call.
type Spy struct {
	ratelimit.Store
	Hold   chan struct{}               // if not nil, each call waits to receive from it
	Before func(context.Context) error // if not nil, called before Store; if it returns an error, Store is not called

	mu      sync.Mutex
	calls   []Call
	results []ratelimit.Result
}

// Do records the call and passes it on.
func (s *Spy) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	return s.do(ctx, Call{"Do", slices.Clone(ops)})
}

// DoOne records the call and passes it on.
func (s *Spy) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	return Func(func(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
		return s.do(ctx, Call{"DoOne", ops})
	}).DoOne(ctx, op)
}

func (s *Spy) do(ctx context.Context, call Call) ([]ratelimit.Result, error) {
	s.mu.Lock()
	s.calls = append(s.calls, call)
	s.mu.Unlock()
	if s.Hold != nil {
		<-s.Hold
	}
	if s.Before != nil {
		if err := s.Before(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out, err := s.Store.Do(ctx, call.Ops)
	s.results = append(s.results, out...)
	return out, err
}

// Calls returns the calls since the last [Spy.Drain].
func (s *Spy) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Drain returns the methods that were called since the last Drain, and forgets all calls.
func (s *Spy) Drain() (methods []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		methods = append(methods, c.Method)
	}
	s.calls = nil
	return methods
}

// Results returns all results, in the order in which the store computed them.
func (s *Spy) Results() []ratelimit.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.results)
}
