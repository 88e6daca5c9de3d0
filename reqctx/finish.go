package reqctx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/lazy"
)

// Host is a [Context] with the methods that a server needs to begin, commit and end a request. Handlers get only
// &h.Context. [Key.Get] is fastest with this context.
//
// Init and SetRemoteAddr must not be called concurrently with anything else.
type Host struct{ Context }

// New returns a request that begins now, with the properties that reg has now and the presets of ctx.
func New(ctx context.Context, reg *Registry) *Host {
	h := new(Host)
	h.Init(ctx, reg)
	return h
}

// Init is [New] for a Host that is part of another struct. h must be zero.
func (h *Host) Init(ctx context.Context, reg *Registry) {
	c := &h.Context
	c.Context = ctx
	c.table = reg.tab.Load()
	if n := len(c.table.bind); n <= inlineSlots {
		c.slots = c.inline[:n]
	} else {
		c.slots = make([]atomic.Pointer[outcome], n)
	}
}

// SetRemoteAddr sets the address of the peer of a request that is not an HTTP request.
func (h *Host) SetRemoteAddr(addr string) { h.peer = addr }

// errCommitPanicked is the error of later Commits after a Commit function panicked.
var errCommitPanicked = errors.New("reqctx: a Commit function panicked")

// Commit saves the properties that have a value. The server calls it before the response's header goes out. Commit
// adds their Vary fields to header and calls their Commit functions with the response's status and header, in the
// order in which they were resolved. From then on, properties can be read but not set. Later calls of Commit wait for
// the first call and return the same error, so a property's Commit function must not call Host.Commit. Commit returns
// [ErrFinished] if the request is closing.
func (h *Host) Commit(status int, header http.Header) error {
	c := &h.Context
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != open {
		c.awaitCommit()
		return c.commitErr
	}
	c.phase = committing
	c.mu.Unlock()
	err := errCommitPanicked
	defer func() {
		c.mu.Lock()
		c.phase, c.commitErr = committed, err
		if c.commits != nil {
			close(c.commits)
		}
	}()
	err = c.runCommits(status, header)
	return err
}

// Committed reports whether Commit was called or the request is closing, so that no property can be set.
func (c *Context) Committed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase != open
}

// CommitUnused commits a request that has used no properties except states, and reports true. Such a request has
// nothing to save and does not change the header. For other requests, CommitUnused does nothing and reports false,
// and the caller must call [Host.Commit].
func (h *Host) CommitUnused() bool {
	c := &h.Context
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != open || c.last != nil {
		return false
	}
	c.phase = committed
	return true
}

// awaitCommit waits for a Commit in progress. The caller holds c.mu, which is free during the wait.
func (c *Context) awaitCommit() {
	if c.phase != committing {
		return
	}
	if c.commits == nil {
		c.commits = make(chan struct{})
	}
	done := c.commits
	c.mu.Unlock()
	<-done
	c.mu.Lock()
}

// runCommits goes on until the Commit functions resolve no further property. It calls them all, even if one fails.
func (c *Context) runCommits(status int, h http.Header) error {
	var errs []error
	var until *outcome
	var buf [8]*outcome
	ctx := c.handlerContext()
	for {
		newer := buf[:0]
		c.mu.Lock()
		for out := c.last; out != until; out = out.prev {
			newer = append(newer, out)
		}
		c.mu.Unlock()
		if len(newer) == 0 {
			return errors.Join(errs...)
		}
		until = newer[0]
		for _, out := range slices.Backward(newer) {
			if err := c.commitOne(ctx, out, status, h); err != nil {
				errs = append(errs, err)
			}
		}
	}
}

// handlerContext returns a context with the properties of c and the values of the handler's context, such as the span
// of a middleware in the server.
func (c *Context) handlerContext() context.Context {
	if r := c.Request(); r != nil {
		if ctx := r.Context(); ctx != context.Context(c) && From(ctx) == c {
			return handlerContext{c, ctx}
		}
	}
	return c
}

type handlerContext struct {
	context.Context
	handler context.Context
}

func (c handlerContext) Value(key any) any { return c.handler.Value(key) }

// commitOne adds a property's Vary fields and calls its Commit function. If that fails, it removes the cookies that the
// function has added, because they stand for values that were not saved.
func (c *Context) commitOne(ctx context.Context, out *outcome, status int, h http.Header) error {
	if out.b == nil {
		return nil // an OnClose function
	}
	if !out.set { // even if Set or Invalidate followed: the handler may have used the value
		for _, field := range out.b.vary {
			if !hasToken(h.Values("Vary"), field) {
				h.Add("Vary", field)
			}
		}
	}
	if !out.b.commits || out.err != nil || c.slots[out.b.slot].Load() != out {
		return nil
	}
	before := len(h["Set-Cookie"])
	err := out.b.ops.commit(ctx, out, status, h)
	if err == nil {
		return nil
	}
	if now := h["Set-Cookie"]; len(now) > before {
		h["Set-Cookie"] = now[:before]
	}
	return fmt.Errorf("reqctx: committing %q: %w", out.b.name, err)
}

func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for t := range strings.SplitSeq(line, ",") {
			if t = strings.TrimSpace(t); t == "*" || strings.EqualFold(t, token) {
				return true
			}
		}
	}
	return false
}

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
