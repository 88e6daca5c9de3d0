package lazy

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrClosed is what a value of a closed [Scope] returns if it was not there
// before, and the cause of the scope's context once it is closed.
var ErrClosed = errors.New("lazy: scope closed")

// Scope owns values and their computations: they end with it. Make one with
// [NewScope] and Close it in the same function.
//
// All methods may be called concurrently, but Close must not be called from a
// function that the scope computes: it would wait for itself.
type Scope struct {
	ctx    scopeContext
	parent <-chan struct{} // Done of the context the scope was made with
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	running int // computations and spawned functions
	closed  bool
	idle    chan struct{} // closed when running falls to 0 after closed
	over    chan struct{} // closed when Close is through
	onClose []func() error
	drained bool    // Close has run all of onClose
	errs    []error // what Close has to report
}

// scopeContext is a scope's context, from which the scope is found.
type scopeContext struct {
	context.Context
	s *Scope
}

// ScopeKey is the key of the [Scope] that a context belongs to: a context.Context
// that has a scope of its own answers it with a *Scope, or nil for none.
type ScopeKey struct{}

// Value makes the scope findable by [ScopeOf].
func (c scopeContext) Value(key any) any {
	if _, ok := key.(ScopeKey); ok {
		return c.s
	}
	return c.Context.Value(key)
}

// ScopeOf returns the scope that ctx belongs to, or nil.
func ScopeOf(ctx context.Context) *Scope {
	s, _ := ctx.Value(ScopeKey{}).(*Scope)
	return s
}

// NewScope returns a scope whose computations run under ctx until Close.
func NewScope(ctx context.Context) *Scope {
	s := &Scope{parent: ctx.Done(), idle: make(chan struct{}), over: make(chan struct{})}
	ctx, s.cancel = context.WithCancelCause(ctx)
	s.ctx = scopeContext{ctx, s}
	return s
}

// outlivedBy reports whether a caller that leaves when done is closed cannot leave
// before the scope ends: without a scope, only a caller that never leaves.
func (s *Scope) outlivedBy(done <-chan struct{}) bool {
	if s == nil {
		return done == nil
	}
	return done == s.ctx.Done() || done == s.parent || done == nil
}

// Context is what the scope's values are computed under.
func (s *Scope) Context() context.Context { return s.ctx }

// OnClose registers fn to be called by Close, after all computations have ended,
// the last registered first. When Close is through, fn is called now, so that
// nothing is left open; its error is then for the next Close.
func (s *Scope) OnClose(fn func() error) {
	s.mu.Lock()
	late := s.drained
	if !late {
		s.onClose = append(s.onClose, fn)
	}
	s.mu.Unlock()
	if late {
		s.runCloser(fn)
	}
}

// Spawn runs fn on a goroutine that Close waits for. It returns [ErrClosed], and
// runs nothing, on a closed scope. A panic in fn is reported by Close, under
// name.
func (s *Scope) Spawn(name string, fn func(ctx context.Context)) error {
	t := &task{s: s, name: name, fn: fn}
	t.Init(s.ctx, s, t)
	if !t.Launch() {
		return ErrClosed
	}
	return nil
}

// task is a spawned function. Nobody waits for it but the scope.
type task struct {
	Flight
	s    *Scope
	name string
	fn   func(ctx context.Context)
}

func (t *task) Name() string                { return t.name }
func (t *task) Compute(ctx context.Context) { t.fn(ctx) }

func (t *task) Finish(abnormal error) {
	if p, ok := abnormal.(*PanicError); ok {
		t.s.lose(p)
	}
}

// Close cancels the scope's context with [ErrClosed], waits for all computations
// to return, and runs the OnClose functions, the last first. It returns their
// errors and the panics of computations that no Get has raised, joined. A second
// Close waits for the first and returns the same.
func (s *Scope) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	if first && s.running == 0 {
		close(s.idle)
	}
	s.mu.Unlock()
	if first {
		s.cancel(ErrClosed)
		<-s.idle
		s.runClosers()
	}
	<-s.over
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

// runClosers runs all OnClose functions and ends Close. It defers the rest so
// that a function which ends the goroutine leaves no other one out.
func (s *Scope) runClosers() {
	fn, more := s.popCloser()
	if !more {
		close(s.over)
		return
	}
	defer s.runClosers()
	s.runCloser(fn)
}

// popCloser takes the last OnClose function away. After false there are no more
// to come.
func (s *Scope) popCloser() (func() error, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.onClose) - 1
	if last < 0 {
		s.drained = true
		return nil, false
	}
	fn := s.onClose[last]
	s.onClose = s.onClose[:last]
	return fn, true
}

func (s *Scope) runCloser(fn func() error) {
	var err error
	guard("OnClose", func() { err = fn() }, func(abnormal error) {
		s.lose(errors.Join(err, abnormal))
	})
}

// lose notes an error that has nobody else to go to.
func (s *Scope) lose(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
}

// found takes back lose for a panic that has reached somebody after all, unless
// Close has reported it.
func (s *Scope) found(p *PanicError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.errs, error(p)); i >= 0 && !s.drained {
		s.errs = slices.Delete(s.errs, i, i+1)
	}
}

// enter counts a computation in, unless the scope is closed.
func (s *Scope) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running++
	return true
}

func (s *Scope) exit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if s.closed && s.running == 0 {
		close(s.idle)
	}
}

// Idle says whether nothing that the scope counts is running, and nothing is left
// for Close to do but to end the scope.
func (s *Scope) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running == 0 && len(s.onClose) == 0 && len(s.errs) == 0
}
