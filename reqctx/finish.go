package reqctx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/lazyreq/lazyreq/lazy"
)

// Go runs a task on a goroutine of the request. When the handler has returned, the task's context is cancelled with
// [lazy.ErrClosed] as the cause, unless the request's context has ended before. The request is finished only after
// the task has returned. A task that must run to its end uses [context.WithoutCancel]. The server's Shutdown also
// waits for such a task. A task's error, panic or [runtime.Goexit] is logged with the task's name. An error that only
// reports the cancellation is not logged. Go returns [ErrFinished] once the request is closing.
func (c *Context) Go(name string, fn func(ctx context.Context) error) error {
	err := c.tasks().Spawn(name, func(ctx context.Context) error {
		err := fn(ctx)
		if interrupted(ctx, err) {
			return nil
		}
		return err
	})
	if err != nil {
		return named(ErrFinished, name)
	}
	return nil
}

// interrupted reports whether a task's error only means that the request has ended.
func interrupted(ctx context.Context, err error) bool {
	if errors.Is(err, ErrFinished) {
		return true
	}
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx)))
}

// OnClose registers fn to be called when the request's tasks have ended, in reverse order together with the
// properties' Close functions. If the request is already finished, fn is called at once, so that nothing is left
// open. Errors are logged.
func (c *Context) OnClose(fn func() error) {
	out := &outcome{fn: fn}
	c.mu.Lock()
	late := c.phase == finished
	if !late {
		out.prev, c.last = c.last, out
	}
	c.mu.Unlock()
	if late {
		c.close(out, c.logErr)
	}
}

// Idle reports whether [Host.Finish] has nothing to wait for and nothing to call.
func (h *Host) Idle() bool {
	c := &h.Context
	if s := c.scope.Load(); s != nil && !s.Idle() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == committing || c.attempts != nil {
		return false
	}
	for out := c.last; out != nil; out = out.prev {
		if out.closeDue() {
			return false
		}
	}
	return true
}

// CancelTasks cancels the contexts of the request's tasks with [lazy.ErrClosed], and does not wait. Call Finish
// afterwards.
func (h *Host) CancelTasks() {
	if s := h.scope.Load(); s != nil {
		s.Cancel()
	}
}

// Finish ends the request. It waits for a Commit in progress, cancels the tasks, and waits for them and for every
// resolution. Then it calls all Close and OnClose functions, the latest first, even if some of them fail or panic.
// After that, every access returns [ErrFinished]. Errors are logged, and returned joined. Only the first call of
// Finish has an effect. It must not be called from a task, a resolution or a Commit function.
//
// If Set or Invalidate overtakes a resolution on a goroutine of the application, the resolution may return after
// Finish. Its Close function is called then.
func (h *Host) Finish() (err error) {
	c := &h.Context
	c.mu.Lock()
	c.awaitCommit()
	if c.phase >= closing {
		c.mu.Unlock()
		return nil
	}
	if c.phase == open {
		c.commitErr = ErrFinished
	}
	c.phase = closing
	c.mu.Unlock()

	var errs []error
	defer func() { // also when a function ends the goroutine
		err = errors.Join(errs...)
		c.logErr(err)
	}()
	if s := c.scope.Load(); s != nil {
		errs = append(errs, s.Close())
	}
	c.awaitAttempts()
	c.runClosers(func(err error) { errs = append(errs, err) })
	return nil
}

// awaitAttempts waits for resolutions that run on goroutines of the application.
func (c *Context) awaitAttempts() {
	for {
		c.mu.Lock()
		a := c.attempts
		c.mu.Unlock()
		if a == nil {
			return
		}
		_, _ = a.Wait(context.WithoutCancel(c), nil)
	}
}

// runClosers calls the remaining Close and OnClose functions, and then empties the slots. It defers the rest of the
// list before each call, so that a function that ends the goroutine does not prevent the others.
func (c *Context) runClosers(report func(error)) {
	out := c.popCloserOrFinish()
	if out == nil {
		return
	}
	defer c.runClosers(report)
	c.close(out, report)
}

// popCloserOrFinish removes the newest entry that has something to close. Without one, it finishes the request.
func (c *Context) popCloserOrFinish() *outcome {
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

// close calls the Close or OnClose function of an entry of the list. It reports errors, and a panic that no reader got.
func (c *Context) close(out *outcome, report func(error)) {
	if out.b == nil {
		closeOne("OnClose", out.fn, report)
		return
	}
	if out.panics != nil && !out.raised.Load() {
		report(out.panics)
	}
	if out.b.closes && !out.set {
		ctx := context.WithoutCancel(c)
		closeOne(out.b.name, func() error { return out.b.ops.close(ctx, out) }, report)
	}
}

// closeOne calls a function and reports its error. A panic, or the end of the goroutine, also counts as an error.
func closeOne(name string, fn func() error, report func(error)) {
	lazy.Guard(name, fn, func(err error, _ *lazy.PanicError) {
		if err != nil {
			report(fmt.Errorf("reqctx: closing %q: %w", name, err))
		}
	})
}

// closing reports whether the request is closing or finished.
func (c *Context) closing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase >= closing
}

// logErr logs an error, unless it is nil, with the request. The stack of a panic is a separate attribute.
func (c *Context) logErr(err error) {
	if err == nil {
		return
	}
	var attrs []slog.Attr
	if r := c.Request(); r != nil {
		attrs = append(attrs, slog.String("method", r.Method), slog.String("path", r.URL.Path))
	} else if peer := c.RemoteAddr(); peer != "" {
		attrs = append(attrs, slog.String("peer", peer))
	}
	text := fmt.Sprint(err) // Error may panic
	if p := panicIn(err); p != nil {
		text = strings.Replace(text, "\n\n"+string(p.Stack), "", 1)
		attrs = append(attrs, slog.String("property", p.Name), slog.String("stack", string(p.Stack)))
	}
	c.Logger().LogAttrs(c, slog.LevelError, "request clean-up failed", append(attrs, slog.String("error", text))...)
}

// panicIn returns the panic that err wraps, or nil. A method of err may panic, such as Unwrap of a nil *fs.PathError.
func panicIn(err error) (p *lazy.PanicError) {
	defer func() { _ = recover() }()
	errors.As(err, &p)
	return p
}
