package reqctx

import (
	"context"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
)

// attempt is one resolution in progress. Readers join it as long as it is in
// the context's list; Set, Invalidate and a timeout take it out.
type attempt struct {
	lazy.Flight
	c      *Context
	b      *binding
	out    *outcome // what Resolve is going to return
	cancel context.CancelFunc
	expiry func() bool // stops the watch on the timeout

	// Guarded by c.mu.
	next    *attempt
	settled bool

	final *outcome // what readers get; written once, before the flight is released
}

// resolve returns b's outcome, waiting for it if need be. Its error is about the
// wait: ctx ended, the request is over, or the wait would close a cycle.
func (c *Context) resolve(ctx context.Context, b *binding) (*outcome, error) {
	if out := c.slots[b.slot].Load(); out != nil {
		return out, nil
	}
	if b.handle {
		return c.makeHandle(b)
	}
	if ctx.Err() != nil && !c.over() {
		return nil, context.Cause(ctx)
	}
	base, inline := c.base(ctx, b)
	caller := lazy.Current(ctx)
	a, started, out, err := c.join(b, base, caller)
	if a == nil {
		return out, err
	}
	var began time.Time
	switch {
	case started && inline:
		if !a.Run(caller) {
			a.abort()
		}
	case started:
		began = time.Now()
		a.launch()
	default:
		began = time.Now()
	}
	if err = a.Wait(ctx, caller); err != nil {
		a.out.asked.Add(1)
		return nil, err
	}
	var waited time.Duration
	if began.IsZero() {
		waited = a.out.took // it ran here, and the clock was read for it already
	} else {
		waited = time.Since(began)
	}
	a.final.asked.Add(1)
	a.final.waited.Add(int64(waited))
	return a.final, nil
}

// start begins to resolve b on a goroutine of its own, unless it is there or on
// its way.
func (c *Context) start(ctx context.Context, b *binding) error {
	if c.slots[b.slot].Load() != nil || b.handle {
		return nil
	}
	a, started, _, err := c.join(b, c.tracked().Context(), lazy.Current(ctx))
	if started {
		a.launch()
	}
	return err
}

// base returns the context to resolve under, and whether to do it on the
// caller's goroutine: if the caller cannot leave before the request ends.
func (c *Context) base(ctx context.Context, b *binding) (context.Context, bool) {
	if b.timeout == 0 {
		done := ctx.Done()
		if done == c.Done() {
			return c, true
		}
		if s := c.scope.Load(); s != nil && done == s.Context().Done() {
			return s.Context(), true
		}
	}
	return c.tracked().Context(), false
}

// tracked returns the scope of the request's goroutines, which ends with the
// request. It is closed if the request got to its end without one.
func (c *Context) tracked() *lazy.Scope {
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
	_ = s.Close() // somebody else was first, or Finish was; this one is empty
	if first != nil {
		return first
	}
	return s
}

// join returns b's outcome if it is there, else the attempt to wait for and
// whether it was begun here, to run under base.
func (c *Context) join(b *binding, base context.Context, caller *lazy.Flight) (*attempt, bool, *outcome, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase >= closing {
		if out := c.slots[b.slot].Load(); out != nil {
			return nil, false, out, nil
		}
		return nil, false, nil, named(ErrFinished, b.name)
	}
	if out := c.slots[b.slot].Load(); out != nil {
		return nil, false, out, nil
	}
	for a := c.flights; a != nil; a = a.next {
		if a.b == b {
			return a, false, nil, nil
		}
	}
	a := &attempt{c: c, b: b, out: b.ops.newOutcome(), next: c.flights}
	a.out.b = b
	a.out.by = askedBy(caller)
	if c.table.opts.Callers {
		a.out.pcs = callers()
	}
	a.Init(base, c.scope.Load(), a)
	c.flights = a
	return a, true, nil, nil
}

// makeHandle makes a handle without the machinery of a resolution. Of two that
// are made at once, one is published and the other is only closed.
func (c *Context) makeHandle(b *binding) (*outcome, error) {
	if c.over() {
		return nil, named(ErrFinished, b.name)
	}
	out := b.ops.newOutcome()
	out.b = b
	b.ops.compute(c, out)
	c.mu.Lock()
	first, late := c.slots[b.slot].Load(), false
	if first == nil && c.phase == open {
		first = out
		c.publish(out)
	} else {
		late = c.drop(out)
	}
	c.mu.Unlock()
	if late {
		c.close(out, c.logErr)
	}
	if first == nil {
		return nil, named(ErrFinished, b.name)
	}
	return first, nil
}

// drop leaves an outcome that is not published to Commit and Finish, and says
// whether it is too late for that, so that the caller has to close it. The caller
// holds c.mu.
func (c *Context) drop(out *outcome) (late bool) {
	if c.phase == finished {
		return out.closeDue()
	}
	if out.closeDue() || len(out.b.vary) > 0 {
		c.enlist(out)
	}
	return false
}

// publish makes out its property's outcome and enters it into the list. The
// caller holds c.mu.
func (c *Context) publish(out *outcome) {
	c.enlist(out)
	c.slots[out.b.slot].Store(out)
}

// enlist enters out into the list of what to commit and to close. The caller
// holds c.mu.
func (c *Context) enlist(out *outcome) {
	out.prev = c.last
	c.last = out
}

// launch runs a on a goroutine of the request's scope, under its timeout if it
// has one.
func (a *attempt) launch() {
	if a.b.timeout > 0 {
		ctx, cancel := context.WithTimeoutCause(a.Context, a.b.timeout, &TimeoutError{a.b.name, a.b.timeout})
		a.Context, a.cancel = ctx, cancel
		a.expiry = context.AfterFunc(ctx, func() { a.expire(a.ended(context.Cause(ctx))) })
	}
	if !a.Launch() {
		a.abort()
	}
}

// abort ends an attempt that cannot begin because the request is over.
func (a *attempt) abort() {
	a.expire(named(ErrFinished, a.b.name))
	a.release()
}

// ended says to a's readers what its context ended with.
func (a *attempt) ended(cause error) error {
	if cause == lazy.ErrClosed {
		return named(ErrFinished, a.b.name)
	}
	return cause
}

// expire lets a's readers go with err, whatever Resolve goes on to do.
func (a *attempt) expire(err error) {
	a.c.mu.Lock()
	a.c.detach(a)
	a.settle(failure(a.b, err))
	a.c.mu.Unlock()
	a.Release()
}

// settle fixes what readers get, unless it is fixed. The caller holds c.mu.
func (a *attempt) settle(out *outcome) {
	if !a.settled {
		a.settled, a.final = true, out
	}
}

// detach takes a out of the list that readers join from, and says whether it was
// there. The caller holds c.mu.
func (c *Context) detach(a *attempt) bool {
	for p := &c.flights; *p != nil; p = &(*p).next {
		if *p == a {
			*p = a.next
			return true
		}
	}
	return false
}

// detachAt takes out the attempt at b, if there is one, and returns it. The
// caller holds c.mu.
func (c *Context) detachAt(b *binding) *attempt {
	for a := c.flights; a != nil; a = a.next {
		if a.b == b {
			c.detach(a)
			return a
		}
	}
	return nil
}

// Name names the property for cycles and panics.
func (a *attempt) Name() string { return a.b.name }

// Compute calls Resolve, and the observer around it.
func (a *attempt) Compute(ctx context.Context) {
	a.out.began = time.Now()
	o := a.c.table.opts.Observer
	if o == nil {
		a.b.ops.compute(ctx, a.out)
		return
	}
	ctx = o.ResolveStart(ctx, a.b.name)
	returned := false
	defer func() {
		err := a.out.err
		if !returned {
			err = errNotReturned
		}
		o.ResolveEnd(ctx, a.b.name, time.Since(a.out.began), err)
	}()
	a.b.ops.compute(ctx, a.out)
	returned = true
}

// Finish publishes the outcome, if the property still waits for it.
func (a *attempt) Finish(abnormal error) {
	out, c := a.out, a.c
	out.took = time.Since(out.began)
	if abnormal != nil {
		out.fail(abnormal)
	}
	keep := out.err == nil || !lazy.OwnCancellation(c, out.err)
	c.mu.Lock()
	a.settle(a.told(keep))
	late := false
	if c.detach(a) && keep {
		c.publish(out)
	} else {
		late = c.drop(out)
	}
	c.mu.Unlock()
	a.release()
	if late {
		a.Release() // readers do not wait for Close
		c.close(out, c.logErr)
	}
}

// told returns what a's readers are told when Resolve has returned: its outcome,
// or the timeout if Resolve has noticed that before the watch did.
func (a *attempt) told(keep bool) *outcome {
	if keep || a.cancel == nil {
		return a.out
	}
	if timeout, ok := context.Cause(a.Context).(*TimeoutError); ok {
		return failure(a.b, timeout)
	}
	return a.out
}

// release gives back what the timeout holds.
func (a *attempt) release() {
	if a.cancel != nil {
		a.expiry()
		a.cancel()
	}
}
