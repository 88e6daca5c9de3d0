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
	errs    []error       // that Close returns
}

// NewScope returns a scope whose computations run under ctx until Close.
func NewScope(ctx context.Context) *Scope {
	s := &Scope{parent: ctx, idle: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// Outlives reports whether a caller with ctx cannot leave before owner ends: ctx has the Done
// channel of owner, or never ends.
func Outlives(ctx, owner context.Context) bool {
	done := ctx.Done()
	return done == nil || done == owner.Done()
}

// outlivedBy reports whether a caller with ctx cannot leave before the scope ends: without a
// scope, only a caller that never leaves.
func (s *Scope) outlivedBy(ctx context.Context) bool {
	if s == nil {
		return ctx.Done() == nil
	}
	return Outlives(ctx, s.ctx) || Outlives(ctx, s.parent)
}

// Context returns the context that the scope's values are computed under.
func (s *Scope) Context() context.Context { return s.ctx }

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

// Close cancels the scope's context as Cancel does, and waits for all computations to
// return. It returns the errors of tasks and the panics that reached no Get, joined. A second
// Close waits, too, and returns the same. The search for cycles does not see that Close waits.
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

// reportOrphan has Close return err, which no caller gets. s may be nil.
func (s *Scope) reportOrphan(err error) {
	if s == nil {
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
	if i := slices.Index(s.errs, error(p)); i >= 0 && !(s.closed && s.running == 0) {
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
