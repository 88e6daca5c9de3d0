package reqctx

import (
	"cmp"
	"context"
	"runtime"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
)

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
