package reqctx

import (
	"context"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
)

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
