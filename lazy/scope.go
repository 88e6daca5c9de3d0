package lazy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// ErrClosed is the error of a value that a closed [Scope] has not computed, and the
// cause of the scope's context once it is closed.
var ErrClosed = errors.New("lazy: scope closed")

// Scope owns values and their computations: they end with it. Make one with
// [NewScope] and Close it in the same function.
//
// A Scope is safe for concurrent use, but a function that the scope computes must not
// call Close: it would wait for itself.
type Scope struct {
	ctx    context.Context
	parent context.Context // the context the scope was made with
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	running int // computations and spawned functions
	closed  bool
	idle    chan struct{} // closed when running falls to 0 after closed
	done    chan struct{} // closed when Close has run all of onClose
	onClose []func() error
	drained bool    // onClose is empty for good
	errs    []error // that Close returns
}

// NewScope returns a scope whose computations run under ctx until Close.
func NewScope(ctx context.Context) *Scope {
	s := &Scope{parent: ctx, idle: make(chan struct{}), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// outlivedBy reports whether a caller that leaves when done is closed cannot leave
// before the scope ends: without a scope, only a caller that never leaves.
func (s *Scope) outlivedBy(done <-chan struct{}) bool {
	if s == nil {
		return done == nil
	}
	return done == s.ctx.Done() || done == s.parent.Done() || done == nil
}

// Context returns the context that the scope's values are computed under.
func (s *Scope) Context() context.Context { return s.ctx }

// OnClose registers fn to be called by Close, after all computations have ended, the
// last registered first. On a scope that is already closed, fn is called at once, so
// that nothing is left open, and the next Close returns its error.
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

// Spawn runs fn on a goroutine that Close waits for. Close returns fn's error, panic or
// [ErrGoexit] with its name. On a closed scope Spawn returns [ErrClosed] and runs nothing.
func (s *Scope) Spawn(name string, fn func(ctx context.Context) error) error {
	if !s.enter() {
		return ErrClosed
	}
	go func() {
		defer s.exit()
		Guard(name, func() error { return fn(s.ctx) }, func(err error, _ *PanicError) {
			if err != nil {
				s.reportOrphan(fmt.Errorf("task %q: %w", name, err))
			}
		})
	}()
	return nil
}

// Cancel cancels the scope's context with [ErrClosed] and does not wait. If the context that
// the scope was made with has ended before, its cause is the scope's. Close follows.
func (s *Scope) Cancel() {
	if s.parent.Err() != nil { // it may be about to cancel the scope's
		s.cancel(context.Cause(s.parent))
	}
	s.cancel(ErrClosed)
}

// Close cancels the scope's context as Cancel does, waits for all computations to
// return, and calls the OnClose functions, the last first. It returns their errors and
// the panics of computations that no Get has raised, joined. A second Close waits for
// the first and returns the same.
func (s *Scope) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	if first && s.running == 0 {
		close(s.idle)
	}
	s.mu.Unlock()
	if first {
		s.Cancel()
		<-s.idle
		s.runClosers()
	}
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

// runClosers calls all OnClose functions. It defers the rest, so that they are called
// also after a function that ends the goroutine.
func (s *Scope) runClosers() {
	fn, more := s.popCloser()
	if !more {
		close(s.done)
		return
	}
	defer s.runClosers()
	s.runCloser(fn)
}

// popCloser removes the last OnClose function. It reports false if there is none, and
// there can be none later.
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
	Guard("OnClose", fn, func(err error, _ *PanicError) { s.reportOrphan(err) })
}

// reportOrphan has Close return err, which no caller gets. s may be nil.
func (s *Scope) reportOrphan(err error) {
	if err == nil || s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
}

// clearOrphan takes back a reported panic that a Get raises after all, unless Close has
// returned it. s may be nil.
func (s *Scope) clearOrphan(p *PanicError) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.errs, error(p)); i >= 0 && !s.drained {
		s.errs = slices.Delete(s.errs, i, i+1)
	}
}

// enter adds a running computation, unless the scope is closed.
func (s *Scope) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running++
	return true
}

// exit removes a running computation.
func (s *Scope) exit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if s.closed && s.running == 0 {
		close(s.idle)
	}
}

// Idle reports whether Close has nothing to wait for, to call and to return.
func (s *Scope) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running == 0 && len(s.onClose) == 0 && len(s.errs) == 0
}
