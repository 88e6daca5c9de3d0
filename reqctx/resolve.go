package reqctx

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"reflect"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
)

// outcome is the result of a property, and an entry of the request's list of outcomes to commit and to close. Once it is
// published, only its link and its atomics change.
type outcome struct {
	self   any          // the *cell[T] around it; nil for a panic, so that Get takes the slow path
	b      *binding     // nil for an OnClose function
	fn     func() error // the OnClose function
	prev   *outcome     // the next older entry of the list
	err    error
	panics *lazy.PanicError // to be raised again for each reader
	set    bool             // by Set or Preset, and not by Resolve
	began  time.Time
	took   time.Duration
	by     *binding  // the property whose resolution read it first; may be nil
	pcs    []uintptr // the stack of the first reader, if recorded

	waited atomic.Int64 // the sum of the readers' waits in nanoseconds
	asked  atomic.Int32 // readers that had to wait
	raised atomic.Bool  // a reader got the panic
}

// cell is an outcome with its value.
type cell[T any] struct {
	outcome
	val T
}

// ops are the operations of a binding that need the type of its values.
type ops interface {
	newOutcome(b *binding) *outcome
	newAttempt(b *binding) *attempt
	compute(ctx context.Context, out *outcome)
	commit(ctx context.Context, out *outcome, status int, h http.Header) error
	close(ctx context.Context, out *outcome) error
	value(out *outcome) (any, error)
	setAny(ctx context.Context, c *Context, b *binding, v any) error
	typ() reflect.Type
}

type provided[T any] struct{ Prop[T] }

func (p provided[T]) newOutcome(b *binding) *outcome {
	c := new(cell[T])
	c.self, c.b = c, b
	return &c.outcome
}

// newAttempt returns an attempt and its outcome, which are one allocation.
func (p provided[T]) newAttempt(b *binding) *attempt {
	a := new(struct {
		attempt
		cell cell[T]
	})
	a.cell.self, a.cell.b, a.out = &a.cell, b, &a.cell.outcome
	return &a.attempt
}

func (p provided[T]) compute(ctx context.Context, out *outcome) {
	c := out.self.(*cell[T])
	for preset := range presets(ctx) {
		if preset.id == out.b.id {
			c.val, _ = preset.val.(T) // fails only for a nil interface, which is the zero T
			c.set = true
			return
		}
	}
	if p.Resolve == nil {
		c.err = named(ErrNoValue, out.b.name)
	} else {
		c.val, c.err = p.Resolve(ctx)
	}
}

func (p provided[T]) commit(ctx context.Context, out *outcome, status int, h http.Header) error {
	return p.Commit(ctx, out.self.(*cell[T]).val, status, h)
}

func (p provided[T]) close(ctx context.Context, out *outcome) error {
	var val T
	if c, ok := out.self.(*cell[T]); ok {
		val = c.val
	}
	return p.Close(ctx, val, out.err)
}

func (p provided[T]) value(out *outcome) (any, error) { return deliver[T](out) }

func (p provided[T]) setAny(ctx context.Context, c *Context, b *binding, v any) error {
	val, ok := v.(T)
	if !ok && !(v == nil && nilable(p.typ())) {
		return fmt.Errorf("%w: property %q holds %v, not %T", ErrType, b.name, p.typ(), v)
	}
	return set(ctx, c, b, val)
}

func nilable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return true
	default:
		return false
	}
}

func (p provided[T]) typ() reflect.Type { return reflect.TypeFor[T]() }

// closeDue reports whether an entry of the list has a function to call or a panic to report at the end.
func (out *outcome) closeDue() bool {
	return out.b == nil || out.b.closes && !out.set || out.panics != nil && !out.raised.Load()
}

// resolve returns b's outcome, waiting for it if necessary. Its error is that of the wait, not the property's.
func (c *Context) resolve(ctx context.Context, b *binding) (*outcome, error) {
	if out := c.slots[b.slot].Load(); out != nil {
		return out, nil
	}
	if b.state {
		return c.makeState(b)
	}
	if ctx.Err() != nil && !c.closing() {
		return nil, context.Cause(ctx)
	}
	base, inline := c.base(ctx, b)
	caller := lazy.Current(ctx)
	a, first, out, err := c.join(ctx, caller, b, base)
	if a == nil {
		return out, err
	}
	inline = inline && first
	var began time.Time
	if !inline {
		began = time.Now()
	}
	if first {
		a.Start(caller, inline)
	}
	final, err := a.Wait(ctx, caller)
	if err != nil {
		a.out.asked.Add(1)
		return nil, err
	}
	out = final.(*outcome)
	out.asked.Add(1)
	if inline {
		out.waited.Add(int64(a.out.took)) // saves reading the clock again
	} else {
		out.waited.Add(int64(time.Since(began)))
	}
	return out, nil
}

// startEarly begins to resolve b on a new goroutine, unless it is resolved or being resolved.
func (c *Context) startEarly(ctx context.Context, b *binding) error {
	if c.slots[b.slot].Load() != nil || b.state {
		return nil
	}
	if ctx.Err() != nil && !c.closing() {
		return context.Cause(ctx)
	}
	a, first, _, err := c.join(ctx, lazy.Current(ctx), b, c.tasks().Context())
	if first {
		a.Start(nil, false)
	}
	return err
}

// base returns the context to resolve under, and whether the caller can resolve inline: it cannot leave before c ends.
func (c *Context) base(ctx context.Context, b *binding) (base context.Context, inline bool) {
	s := c.scope.Load()
	switch {
	case b.timeout > 0:
	case lazy.Outlives(ctx, c):
		return c, true
	case s != nil && lazy.Outlives(ctx, s.Context()):
		return s.Context(), true
	}
	return c.tasks().Context(), false
}

// tasks returns the scope of the request's goroutines. It is closed if the request ended without one.
func (c *Context) tasks() *lazy.Scope {
	if s := c.scope.Load(); s != nil {
		return s
	}
	s := lazy.NewScope(c) // not under the lock: it calls methods of the request's context
	c.mu.Lock()
	first := c.scope.Load()
	if first == nil && c.phase < closing {
		c.scope.Store(s)
		c.mu.Unlock()
		return s
	}
	c.mu.Unlock()
	_ = s.Close() // another call was first, or Finish; this one is empty
	return cmp.Or(first, s)
}

// join returns b's outcome if it is there, or an error if there can be none. Otherwise, it returns the attempt to wait
// for, and whether the reader is the first and has to start it. A new attempt runs under base, and records the reader's
// context and caller, the [lazy.Current] computation of that context.
func (c *Context) join(ctx context.Context, caller *lazy.Flight, b *binding, base context.Context) (a *attempt, first bool, out *outcome, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if out = c.slots[b.slot].Load(); out != nil {
		return nil, false, out, nil
	}
	if c.phase >= closing {
		return nil, false, nil, named(ErrFinished, b.name)
	}
	if a = c.attemptOf(b); a != nil {
		return a, false, nil, nil
	}
	a = b.ops.newAttempt(b)
	a.c, a.reader, a.next = c, ctx, c.attempts
	if caller != nil {
		if by, ok := caller.Work().(*attempt); ok {
			a.out.by = by.out.b
		}
	}
	if c.table.opts.Callers {
		pcs := make([]uintptr, 16) // enough to get out of the library's packages
		a.out.pcs = pcs[:runtime.Callers(1, pcs)]
	}
	a.Init(base, c.scope.Load(), a)
	c.attempts = a
	return a, true, nil, nil
}

// attemptOf returns the attempt at b that readers join, or nil. c.mu is held.
func (c *Context) attemptOf(b *binding) *attempt {
	a := c.attempts
	for a != nil && a.out.b != b {
		a = a.next
	}
	return a
}

// detach removes a, which may be nil, from the list of attempts, and reports whether it was there. c.mu is held.
func (c *Context) detach(a *attempt) bool {
	for link := &c.attempts; *link != nil; link = &(*link).next {
		if *link == a {
			*link = a.next
			return true
		}
	}
	return false
}

// makeState makes a state, also while the request is closing. If two goroutines do, the first result is published.
func (c *Context) makeState(b *binding) (*outcome, error) {
	out := b.ops.newOutcome(b)
	b.ops.compute(c, out)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == finished {
		return nil, named(ErrFinished, b.name)
	}
	if first := c.slots[b.slot].Load(); first != nil {
		return first, nil
	}
	c.slots[b.slot].Store(out)
	return out, nil
}

// attempt is one resolution. Readers join it until it ends, or Set, Invalidate or a timeout removes it from the list.
type attempt struct {
	lazy.Flight
	c      *Context
	reader context.Context // of the reader that began the resolution
	out    *outcome        // of Resolve
	next   *attempt        // in the context's list; guarded by c.mu
}

// end completes a with err. Resolve was not called, or may still be running. The next reader begins anew.
func (a *attempt) end(err error) {
	if err == lazy.ErrClosed {
		err = named(ErrFinished, a.out.b.name)
	}
	out := a.out.b.ops.newOutcome(a.out.b)
	out.err = err
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.c.detach(a)
	a.Complete(out)
}

// Name returns the property's name, for cycles and panics.
func (a *attempt) Name() string { return a.out.b.name }

// Compute calls Resolve, under the timeout if there is one, and the observer before and after it.
func (a *attempt) Compute(ctx context.Context) {
	a.out.began = time.Now()
	if after := a.out.b.timeout; after > 0 {
		timed, cancel := context.WithTimeoutCause(a.Context, after, &TimeoutError{a.out.b.name, after})
		defer cancel()
		stop := context.AfterFunc(timed, func() { a.end(context.Cause(timed)) })
		defer stop()
		a.Context = timed // ctx is a, so Resolve has the timeout, too
	}
	o := a.c.table.opts.Observer
	if o == nil {
		a.out.b.ops.compute(ctx, a.out)
		return
	}
	ctx = o.ResolveStart(ctx, a.out.b.name)
	err := ErrNotReturned
	defer func() { o.ResolveEnd(ctx, a.out.b.name, time.Since(a.out.began), err) }()
	a.out.b.ops.compute(ctx, a.out)
	err = a.out.err
}

// Finish completes the attempt. It publishes the outcome, unless that is a cancellation of this attempt alone, or the
// property was set or invalidated or has timed out meanwhile.
func (a *attempt) Finish(abnormal error) {
	out, c := a.out, a.c
	if abnormal == lazy.ErrClosed { // Resolve was not called
		a.end(abnormal)
		return
	}
	out.took = time.Since(out.began)
	if abnormal != nil {
		out.err = abnormal
	}
	if p, ok := abnormal.(*lazy.PanicError); ok {
		out.self, out.panics = nil, p
	}
	keep := out.err == nil || !lazy.OwnCancellation(c, out.err)
	if timeout, ok := context.Cause(a.Context).(*TimeoutError); ok && !keep && out.b.timeout > 0 {
		a.end(timeout) // Resolve noticed it first; the call of Complete below then has no effect
	}
	c.mu.Lock()
	late := c.phase == finished
	kept := c.detach(a) && keep
	if kept {
		c.slots[out.b.slot].Store(out)
	}
	if !late && (kept || len(out.b.vary) > 0 || out.closeDue()) {
		out.prev, c.last = c.last, out
	}
	a.Complete(out)
	c.mu.Unlock()
	if late {
		c.close(out, c.logErr)
	}
}

// set stores v and makes it b's value.
func set[T any](ctx context.Context, c *Context, b *binding, v T) error {
	c.mu.Lock()
	err := c.checkWritable(b)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	p := b.ops.(provided[T])
	if p.Store != nil {
		if err := p.Store(ctx, v); err != nil {
			return err
		}
	}
	out := p.newOutcome(b)
	out.self.(*cell[T]).val, out.set = v, true
	return c.overtake(out)
}

// overtake publishes out in place of its property's outcome. The readers of a resolution in progress get it as well.
func (c *Context) overtake(out *outcome) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkWritable(out.b); err != nil {
		return err
	}
	c.slots[out.b.slot].Store(out)
	out.prev, c.last = c.last, out
	if a := c.attemptOf(out.b); a != nil {
		c.detach(a)
		a.Complete(out)
	}
	return nil
}

// checkWritable returns an error if b cannot be set any more. c.mu is held.
func (c *Context) checkWritable(b *binding) error {
	switch {
	case c.phase >= closing:
		return named(ErrFinished, b.name)
	case c.phase > open:
		return named(ErrCommitted, b.name)
	default:
		return nil
	}
}
