package reqctx

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazyreq/lazyreq/lazy"
)

// Go runs a task on a goroutine that belongs to the request: when the handler has
// returned, its context is cancelled, with [lazy.ErrClosed] as the cause, and
// the request is over only after the task has returned. A task that must run to
// its end uses [context.WithoutCancel]; the server's Shutdown waits for it too.
// An error that it returns, other than its own cancellation, is logged with its
// name; so are a panic and a [runtime.Goexit]. Go returns [ErrFinished] once the request
// is closing.
func (c *Context) Go(name string, fn func(ctx context.Context) error) error {
	err := c.tasks().Spawn(name, func(ctx context.Context) {
		safely("task", name, func() error {
			err := fn(ctx)
			if interrupted(ctx, err) {
				return nil
			}
			return err
		}, c.note)
	})
	if err != nil {
		return named(ErrFinished, name)
	}
	return nil
}

// interrupted says whether a task's error tells only that its request is over.
func interrupted(ctx context.Context, err error) bool {
	if errors.Is(err, ErrFinished) {
		return true
	}
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx)))
}

// OnClose registers fn to be called after the response, when the request's tasks
// have ended, in reverse order together with the properties' Close functions. On
// a finished request it is called now, so that nothing is left open. Errors are
// logged.
func (c *Context) OnClose(fn func() error) {
	c.mu.Lock()
	out := &outcome{fn: fn}
	late := c.record(out, false)
	c.mu.Unlock()
	if late {
		c.close(out, c.logErr)
	}
}

// Idle says whether [Context.Finish] has nothing to wait for and nothing to run.
func (c *Context) Idle() bool {
	if s := c.scope.Load(); s != nil && !s.Idle() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attempts != nil || c.commit == committing {
		return false
	}
	for out := c.last; out != nil; out = out.prev {
		if out.closeDue() {
			return false
		}
	}
	return true
}

// Finish ends the request: it waits for a Commit in progress, cancels the tasks,
// waits for them and for every resolution to return, and then calls the Close and
// OnClose functions, the latest first, also after one has failed or panicked.
// From then on every access is [ErrFinished]. Errors are logged, and returned
// joined. Only the first Finish does anything. It must not be called from a task,
// a resolution or a Commit function.
func (c *Context) Finish() (err error) {
	c.mu.Lock()
	c.awaitCommit()
	if c.phase >= closing {
		c.mu.Unlock()
		return nil
	}
	c.phase = closing
	c.mu.Unlock()

	var errs []error
	defer func() { // a function that ends the goroutine does not keep the errors from the log
		c.mu.Lock()
		errs = append(c.taskErrs, errs...)
		c.mu.Unlock()
		err = errors.Join(errs...)
		c.logErr(err)
	}()
	if s := c.scope.Load(); s != nil {
		errs = append(errs, s.Close())
	}
	c.awaitFlights()
	c.runClosers(func(err error) { errs = append(errs, err) })
	return nil
}

// awaitFlights waits for resolutions that run on goroutines of others.
func (c *Context) awaitFlights() {
	for {
		c.mu.Lock()
		a := c.attempts
		c.mu.Unlock()
		if a == nil {
			return
		}
		a.Join()
		_, _ = a.Wait(context.WithoutCancel(c), nil)
	}
}

// runClosers empties the list and then the slots. It defers the rest so that a function
// which ends the goroutine leaves no other one out.
func (c *Context) runClosers(report func(error)) {
	out := c.popCloser()
	if out == nil {
		return
	}
	defer c.runClosers(report)
	c.close(out, report)
}

// close runs what is due for an entry of the list, and reports its errors.
func (c *Context) close(out *outcome, report func(error)) {
	if out.fn != nil {
		safely("closing", "OnClose", out.fn, report)
		return
	}
	if out.unseen() {
		report(out.panics)
	}
	if out.closes() {
		ctx := context.WithoutCancel(c)
		safely("closing", out.b.name, func() error { return out.b.ops.close(ctx, out) }, report)
	}
}

// popCloser takes away the newest entry that has something to close. After nil
// there are no more to come and the request is finished.
func (c *Context) popCloser() *outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.last != nil {
		out := c.last
		c.last = out.prev
		if out.closeDue() {
			return out
		}
	}
	c.phase = finished
	for i := range c.slots {
		if c.slots[i].Load() != nil {
			c.slots[i].Store(nil)
		}
	}
	return nil
}

// closeDue says whether an entry of the list has something to close.
func (out *outcome) closeDue() bool {
	return out.fn != nil || out.closes() || out.unseen()
}

// closing reports whether the request is closing or finished.
func (c *Context) closing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase >= closing
}

// note keeps an error of a task for Finish.
func (c *Context) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taskErrs = append(c.taskErrs, err)
}

func (c *Context) logErr(err error) {
	if err != nil {
		c.Logger().ErrorContext(c, "request clean-up failed", "error", err)
	}
}

// safely runs a task or a clean-up function and reports its error. A panic is one, so that
// the others run too, and so is the end of the goroutine.
func safely(doing, name string, fn func() error, report func(error)) {
	err := lazy.ErrGoexit
	defer func() {
		if v := recover(); v != nil {
			err = lazy.NewPanicError(name, v)
		}
		if err != nil {
			report(fmt.Errorf("reqctx: %s %q: %w", doing, name, err))
		}
	}()
	err = fn()
}
