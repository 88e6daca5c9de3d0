package lazy

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrClosed is the error of a value whose computation had not begun when its [Scope] was closed. It is also the cause
// with which Close cancels the scope's context.
var ErrClosed = errors.New("lazy: scope closed")

// Scope owns values and their computations, which end with the scope. Make a scope with [NewScope] and Close it in
// the same function. A Scope is safe for concurrent use, but the function of one of its values must not call Close,
// because it would wait for itself.
type Scope struct {
	ctx    context.Context
	parent context.Context // the context that the scope was made with
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	running int // computations and spawned functions
	closed  bool
	idle    chan struct{} // closed when the scope is closed and nothing runs
	errs    []error       // the errors that Close returns
}

// NewScope returns a scope whose computations run under ctx until Close.
func NewScope(ctx context.Context) *Scope {
	s := &Scope{parent: ctx, idle: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// Outlives reports whether a caller with ctx cannot leave before owner ends: ctx has the Done channel of owner, or
// never ends.
func Outlives(ctx, owner context.Context) bool {
	done := ctx.Done()
	return done == nil || done == owner.Done()
}

// outlivedBy reports whether a caller with ctx cannot leave before the scope ends. A nil scope never ends.
func (s *Scope) outlivedBy(ctx context.Context) bool {
	if s == nil {
		return ctx.Done() == nil
	}
	return Outlives(ctx, s.ctx) || Outlives(ctx, s.parent)
}

// Context returns the context under which the scope's values are computed.
func (s *Scope) Context() context.Context { return s.ctx }

// Spawn runs fn on a goroutine that Close waits for. Close returns the error of fn, its panic or [ErrGoexit],
// together with the name. On a closed scope, Spawn returns [ErrClosed] and does not run fn.
func (s *Scope) Spawn(name string, fn func(ctx context.Context) error) error {
	if !s.enter() {
		return ErrClosed
	}
	go func() {
		defer s.exit()
		Guard(name, func() error { return fn(s.ctx) }, func(err error, _ *PanicError) {
			if err != nil {
				s.addError(fmt.Errorf("task %q: %w", name, err))
			}
		})
	}()
	return nil
}

// Cancel cancels the scope's context and does not wait. The cause is [ErrClosed], or the cause of the context that the
// scope was made with if that has ended already.
func (s *Scope) Cancel() {
	if s.parent.Err() != nil { // the scope's context may not have been told yet
		s.cancel(context.Cause(s.parent))
	}
	s.cancel(ErrClosed)
}

// Close cancels the scope's context as Cancel does, and waits until all computations have returned. It returns the
// joined errors of tasks and the panics that no Get waited for: the first 100, because a scope may live for as long
// as the process. A second Close also waits, and returns the same error. A cycle that includes a call of Close is not
// detected.
func (s *Scope) Close() error {
	s.mu.Lock()
	if !s.closed && s.running == 0 {
		close(s.idle)
	}
	s.closed = true
	s.mu.Unlock()
	s.Cancel()
	<-s.idle
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.errs...)
}

// maxErrors is the maximum number of errors that Close returns.
const maxErrors = 100

// addError adds an error that Close returns.
func (s *Scope) addError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.errs) < maxErrors {
		s.errs = append(s.errs, err)
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

func (s *Scope) exit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if s.closed && s.running == 0 {
		close(s.idle)
	}
}

// Idle reports whether Close has nothing to wait for and nothing to return.
func (s *Scope) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running == 0 && len(s.errs) == 0
}
