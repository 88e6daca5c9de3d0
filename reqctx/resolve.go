package reqctx

import (
	"context"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
)

// resolve returns b's outcome, waiting for it if necessary. It returns an error if the
// wait fails: ctx ended, the request is finished, or the wait would close a cycle.
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
	a, first, out, err := c.join(b, base)
	if a == nil {
		return out, err
	}
	inline = inline && first
	var began time.Time
	if !inline {
		began = time.Now()
	}
	if first {
		a.readBy(ctx, caller)
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
		out.waited.Add(int64(a.out.took)) // the clock was read for it already
	} else {
		out.waited.Add(int64(time.Since(began)))
	}
	return out, nil
}

// startEarly begins to resolve b on a new goroutine, unless it is there or being resolved.
func (c *Context) startEarly(ctx context.Context, b *binding) error {
	if c.slots[b.slot].Load() != nil || b.state {
		return nil
	}
	a, first, _, err := c.join(b, c.tasks().Context())
	if first {
		a.readBy(ctx, lazy.Current(ctx))
		a.Start(nil, false)
	}
	return err
}

// base returns the context to resolve under, and whether to resolve on the caller's
// goroutine: if the caller cannot leave before the request ends.
func (c *Context) base(ctx context.Context, b *binding) (base context.Context, inline bool) {
	if b.timeout == 0 {
		done := ctx.Done()
		if done == c.Done() {
			return c, true
		}
		if s := c.scope.Load(); s != nil && done == s.Context().Done() {
			return s.Context(), true
		}
	}
	return c.tasks().Context(), false
}

// tasks returns the scope of the request's goroutines, which ends with the request. It
// is closed if the request ended without one.
func (c *Context) tasks() *lazy.Scope {
	if s := c.scope.Load(); s != nil {
		return s
	}
	s := lazy.NewScope(c)
	c.mu.Lock()
	first := c.scope.Load()
	if first == nil && c.phase == open {
		first = s
		c.scope.Store(s)
	}
	c.mu.Unlock()
	if first == s {
		return s
	}
	_ = s.Close() // another call was first, or Finish; this one is empty
	if first != nil {
		return first
	}
	return s
}

// join returns b's outcome if it is there, or else the attempt to wait for, and whether the caller is
// the first and has to start it. A new attempt runs under base.
func (c *Context) join(b *binding, base context.Context) (a *attempt, first bool, out *outcome, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if out := c.slots[b.slot].Load(); out != nil {
		return nil, false, out, nil
	}
	if c.phase >= closing {
		return nil, false, nil, named(ErrFinished, b.name)
	}
	if a = *c.attemptOf(b); a != nil {
		return a, false, nil, nil
	}
	a = &attempt{c: c, out: b.ops.newOutcome(b), next: c.attempts}
	a.Init(base, c.scope.Load(), a)
	c.attempts = a
	return a, true, nil, nil
}

// attemptOf returns the link of the list to the attempt at b, or the last link, which
// is nil. c.mu is held.
func (c *Context) attemptOf(b *binding) **attempt {
	link := &c.attempts
	for *link != nil && (*link).out.b != b {
		link = &(*link).next
	}
	return link
}

// detach removes a from the list that readers join from, and reports whether it was
// there. c.mu is held.
func (c *Context) detach(a *attempt) bool {
	link := c.attemptOf(a.out.b)
	if *link != a {
		return false
	}
	*link = a.next
	return true
}

// makeState makes a state without an attempt. Of two that are made at once, the first is
// published.
func (c *Context) makeState(b *binding) (*outcome, error) {
	if c.closing() {
		return nil, named(ErrFinished, b.name)
	}
	out := b.ops.newOutcome(b)
	b.ops.compute(c, out)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase >= closing {
		return nil, named(ErrFinished, b.name)
	}
	if first := c.slots[b.slot].Load(); first != nil {
		return first, nil
	}
	c.slots[b.slot].Store(out)
	return out, nil
}

// addOutcome adds out to what is to be committed and closed, and publishes it if publish
// is set. It reports whether the request is already finished and out has to be closed
// by the caller. c.mu is held.
func (c *Context) addOutcome(out *outcome, publish bool) (late bool) {
	switch {
	case c.phase == finished:
		return out.closeDue()
	case publish:
		c.slots[out.b.slot].Store(out)
	case !out.closeDue() && len(out.b.vary) == 0:
		return false
	}
	out.prev, c.last = c.last, out
	return false
}
