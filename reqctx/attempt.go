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
	c      *Context
	reader context.Context // of the reader that began the resolution
	out    *outcome        // of Resolve
	stop   func()          // releases the timeout; nil without one
	next   *attempt        // in the context's list; guarded by c.mu
}

// readBy records the first reader of a, which has not started: its context, and the [lazy.Current]
// computation of that.
func (a *attempt) readBy(ctx context.Context, caller *lazy.Flight) {
	a.reader = ctx
	if caller != nil {
		if by, ok := caller.Work().(*attempt); ok {
			a.out.by = by.out.b
		}
	}
	if a.c.table.opts.Callers {
		a.out.pcs = callers()
	}
}

// fail completes a with the cause of its end, even if Resolve has not returned. The
// next reader begins anew.
func (a *attempt) fail(err error) {
	if err == lazy.ErrClosed {
		err = named(ErrFinished, a.out.b.name)
	}
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.c.detach(a)
	a.Complete(failure(a.out.b, err))
}

// Name returns the property's name, for cycles and panics.
func (a *attempt) Name() string { return a.out.b.name }

// Compute calls Resolve, under the timeout if there is one, and the observer before and
// after it.
func (a *attempt) Compute(ctx context.Context) {
	a.out.began = time.Now()
	if a.out.b.timeout > 0 {
		timed, cancel := context.WithTimeoutCause(a.Context, a.out.b.timeout, &TimeoutError{a.out.b.name, a.out.b.timeout})
		stop := context.AfterFunc(timed, func() { a.fail(context.Cause(timed)) })
		a.Context, a.stop = timed, func() { stop(); cancel() }
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
		readers = failure(a.out.b, timeout) // Resolve noticed the timeout first
	}
	c.mu.Lock()
	late := c.addOutcome(out, c.detach(a) && keep)
	a.Complete(readers)
	c.mu.Unlock()
	if late {
		c.close(out, c.logErr)
	}
}
