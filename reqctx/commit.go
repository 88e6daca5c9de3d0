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
