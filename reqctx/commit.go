package reqctx

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// errCommitPanicked is the error of later Commits after a Commit function panicked.
var errCommitPanicked = errors.New("reqctx: a Commit function panicked")

// Commit saves the properties that have a value, before the response's header goes out:
// it adds their Vary fields to h and calls their Commit functions with the response's status
// and h, in the order in which they were resolved. From then on, properties can be read but
// not set. Only the first Commit does anything; the others wait for it and return the same
// error, so a Commit function must not call it. On a request that is closing, Commit returns
// [ErrFinished].
func (c *Context) Commit(status int, h http.Header) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.commit != uncommitted:
		c.awaitCommit()
		return c.commitErr
	case c.phase >= closing:
		return ErrFinished
	case c.last == nil: // most requests use no property that commits
		c.commit = committed
		return nil
	}
	c.commit = committing
	c.mu.Unlock()
	err := errCommitPanicked
	defer func() {
		c.mu.Lock()
		c.commit, c.commitErr = committed, err
		if c.commits != nil {
			close(c.commits)
		}
	}()
	err = c.runCommits(status, h)
	return err
}

// Committed reports whether Commit was called.
func (c *Context) Committed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.commit != uncommitted
}

// CommitUnused commits a request that has used no property, so that there is nothing to
// save and no header to change. If it has used one, CommitUnused reports false and does
// nothing: [Context.Commit] is needed.
func (c *Context) CommitUnused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.commit != uncommitted || c.phase >= closing || c.last != nil {
		return false
	}
	c.commit = committed
	return true
}

// awaitCommit waits for a Commit in progress. The caller holds c.mu, which is
// free while it waits.
func (c *Context) awaitCommit() {
	if c.commit != committing {
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

// runCommits goes on until the Commit functions resolve no further property. It calls
// all of them, also after one has failed.
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

// handlerContext returns c with the values that the handler's context has, such as the span of a
// middleware within the server. It ends when c does.
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

// Value returns the value of the handler's context.
func (c handlerContext) Value(key any) any { return c.handler.Value(key) }

// commitOne adds a property's Vary fields and calls its Commit function. If that fails,
// the cookies that it has added are removed: they stand for values that were not saved.
func (c *Context) commitOne(ctx context.Context, out *outcome, status int, h http.Header) error {
	if out.b == nil {
		return nil // an OnClose function
	}
	if !out.set { // also if it was overtaken: the handler may have used it
		addVary(h, out.b.vary)
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

// addVary adds the fields that Vary does not have yet.
func addVary(h http.Header, fields []string) {
	for _, f := range fields {
		if !hasToken(h.Values("Vary"), f) {
			h.Add("Vary", f)
		}
	}
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
