package reqctx

import (
	"context"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
)

// attempt is one resolution in progress. Readers join it while it is in the context's
// list; Set, Invalidate and a timeout remove it.
type attempt struct {
	lazy.Flight
	c    *Context
	b    *binding
	out  *outcome // of Resolve
	stop func()   // releases the timeout; nil without one
	next *attempt // in the context's list; guarded by c.mu
}

// resolve returns b's outcome, waiting for it if necessary. It returns an error if the
// wait fails: ctx ended, the request is finished, or the wait would close a cycle.
func (c *Context) resolve(ctx context.Context, b *binding) (*outcome, error) {
	if out := c.slots[b.slot].Load(); out != nil {
		return out, nil
	}
	if b.handle {
		return c.makeHandle(b)
	}
	if ctx.Err() != nil && !c.closing() {
		return nil, context.Cause(ctx)
	}
	base, inline := c.base(ctx, b)
	caller := lazy.Current(ctx)
	a, first, out, err := c.join(b, base, caller)
	if a == nil {
		return out, err
	}
	inline = inline && first
	var began time.Time
	if !inline {
		began = time.Now()
	}
	if first {
		a.start(caller, inline)
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
	if c.slots[b.slot].Load() != nil || b.handle {
		return nil
	}
	a, first, _, err := c.join(b, c.tasks().Context(), lazy.Current(ctx))
	if first {
		a.start(nil, false)
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

// join returns b's outcome if it is there, or else the attempt to wait for, to run
// under base, and whether the caller is the first and has to start it.
func (c *Context) join(b *binding, base context.Context, caller *lazy.Flight) (a *attempt, first bool, out *outcome, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if out := c.slots[b.slot].Load(); out != nil {
		return nil, false, out, nil
	}
	if c.phase >= closing {
		return nil, false, nil, named(ErrFinished, b.name)
	}
	if a := *c.attemptOf(b); a != nil {
		a.Join()
		return a, false, nil, nil
	}
	a = &attempt{c: c, b: b, out: b.ops.newOutcome(b), next: c.attempts}
	a.out.by = resolvedBy(caller)
	if c.table.opts.Callers {
		a.out.pcs = callers()
	}
	a.Init(base, c.scope.Load(), a)
	a.Join()
	c.attempts = a
	return a, true, nil, nil
}

// attemptOf returns the link of the list to the attempt at b, or the last link, which
// is nil. c.mu is held.
func (c *Context) attemptOf(b *binding) **attempt {
	link := &c.attempts
	for *link != nil && (*link).b != b {
		link = &(*link).next
	}
	return link
}

// detach removes a from the list that readers join from, and reports whether it was
// there. c.mu is held.
func (c *Context) detach(a *attempt) bool {
	link := c.attemptOf(a.b)
	if *link != a {
		return false
	}
	*link = a.next
	return true
}

// makeHandle makes a handle without an attempt. Of two that are made at once, one is
// published and the other is only closed.
func (c *Context) makeHandle(b *binding) (*outcome, error) {
	if c.closing() {
		return nil, named(ErrFinished, b.name)
	}
	out := b.ops.newOutcome(b)
	b.ops.compute(c, out)
	c.mu.Lock()
	published := c.slots[b.slot].Load()
	first := published == nil && c.phase == open
	late := c.record(out, first)
	c.mu.Unlock()
	if late {
		c.close(out, c.logErr)
	}
	switch {
	case first:
		return out, nil
	case published == nil:
		return nil, named(ErrFinished, b.name)
	default:
		return published, nil
	}
}

// record adds out to what is to be committed and closed, and publishes it if publish
// is set. It reports whether the request is already finished and out has to be closed
// by the caller. c.mu is held.
func (c *Context) record(out *outcome, publish bool) (late bool) {
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

// start computes a, under its timeout if it has one.
func (a *attempt) start(caller *lazy.Flight, inline bool) {
	if a.b.timeout > 0 {
		ctx, cancel := context.WithTimeoutCause(a.Context, a.b.timeout, &TimeoutError{a.b.name, a.b.timeout})
		stop := context.AfterFunc(ctx, func() { a.fail(context.Cause(ctx)) })
		a.Context, a.stop = ctx, func() { stop(); cancel() }
	}
	a.Start(caller, inline)
}

// fail completes a with the cause of its end, even if Resolve has not returned. The
// next reader begins anew.
func (a *attempt) fail(err error) {
	if err == lazy.ErrClosed {
		err = named(ErrFinished, a.b.name)
	}
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.c.detach(a)
	a.Complete(failure(a.b, err))
}

// Name returns the property's name, for cycles and panics.
func (a *attempt) Name() string { return a.b.name }

// Compute calls Resolve, and the observer before and after it.
func (a *attempt) Compute(ctx context.Context) {
	a.out.began = time.Now()
	o := a.c.table.opts.Observer
	if o == nil {
		a.b.ops.compute(ctx, a.out)
		return
	}
	ctx = o.ResolveStart(ctx, a.b.name)
	err := errNotReturned
	defer func() { o.ResolveEnd(ctx, a.b.name, time.Since(a.out.began), err) }()
	a.b.ops.compute(ctx, a.out)
	err = a.out.err
}

// Finish completes the attempt, and publishes the outcome unless the property has been
// set or invalidated meanwhile.
func (a *attempt) Finish(abnormal error) {
	out, c := a.out, a.c
	if a.stop != nil {
		a.stop()
	}
	if abnormal == lazy.ErrClosed { // Resolve was not called
		a.fail(abnormal)
		return
	}
	out.took = time.Since(out.began)
	if abnormal != nil {
		out.fail(abnormal)
	}
	keep := out.err == nil || !lazy.OwnCancellation(c, out.err)
	readers := out
	if timeout, ok := context.Cause(a.Context).(*TimeoutError); ok && !keep && a.stop != nil {
		readers = failure(a.b, timeout) // Resolve noticed the timeout first
	}
	c.mu.Lock()
	late := c.record(out, c.detach(a) && keep)
	a.Complete(readers)
	c.mu.Unlock()
	if late {
		c.close(out, c.logErr)
	}
}
