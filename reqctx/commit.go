package reqctx

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// errCommitPanicked is what later Commits return when a Commit function
// panicked.
var errCommitPanicked = errors.New("reqctx: a Commit function panicked")

// Commit lets the properties that have a value save it, before the response's
// header goes out: it adds their Vary fields to h and calls their Commit
// functions, in the order in which they were resolved. From then on, properties
// can be read but not set. Only the first Commit does anything; the others wait
// for it and return the same error, so that a Commit function must not call it.
// On a request that is finishing without one, Commit is [ErrFinished].
func (c *Context) Commit(h http.Header) error {
	first, err := c.beginCommit()
	if !first {
		return err
	}
	err = errCommitPanicked
	defer func() { c.endCommit(err) }()
	err = c.runCommits(h)
	return err
}

// Committed says whether Commit was called.
func (c *Context) Committed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.commit != uncommitted
}

// CommitUnused is [Context.Commit] for a request none of whose properties was used, so
// that there is nothing to save and nothing to add to a header. It says false, and does
// nothing, if one was.
func (c *Context) CommitUnused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.commit != uncommitted || c.phase >= closing || c.last != nil {
		return false
	}
	c.commit = committed
	return true
}

// beginCommit makes the caller the one who commits, or else waits for that one.
func (c *Context) beginCommit() (first bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.commit == uncommitted {
		if c.phase >= closing {
			return false, ErrFinished
		}
		if c.last == nil { // most requests use nothing that could have something to commit
			c.commit = committed
			return false, nil
		}
		c.commit = committing
		return true, nil
	}
	c.awaitCommit()
	return false, c.commitErr
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
	through := c.commits
	c.mu.Unlock()
	<-through
	c.mu.Lock()
}

func (c *Context) endCommit(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.commitErr = err
	c.commit = committed
	if c.commits != nil {
		close(c.commits)
	}
}

// runCommits goes on until no Commit function has resolved anything new. All are
// called, also after one has failed: each has its own to save.
func (c *Context) runCommits(h http.Header) error {
	var errs []error
	var until *outcome
	var room [8]*outcome
	for {
		fresh := c.since(until, room[:])
		if len(fresh) == 0 {
			return errors.Join(errs...)
		}
		until = fresh[len(fresh)-1]
		for _, out := range fresh {
			if out.b == nil {
				continue // an OnClose function
			}
			if out.source == resolved { // also if it was overtaken: somebody may have seen it
				addVary(h, out.b.vary)
			}
			if !out.b.commits || out.err != nil || c.slots[out.b.slot].Load() != out {
				continue
			}
			if err := c.commitOne(out, h); err != nil {
				errs = append(errs, fmt.Errorf("reqctx: committing %q: %w", out.b.name, err))
			}
		}
	}
}

// commitOne calls a Commit function. If it fails, the cookies it has set are taken
// back: they would promise what was not saved.
func (c *Context) commitOne(out *outcome, h http.Header) error {
	before := len(h["Set-Cookie"])
	err := out.b.ops.commit(c, out, h)
	if now := h["Set-Cookie"]; err != nil && len(now) > before {
		h["Set-Cookie"] = now[:before]
	}
	return err
}

// since returns what came into the list after until, oldest first, in room if there is
// enough of it.
func (c *Context) since(until *outcome, room []*outcome) []*outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for out := c.last; out != until; out = out.prev {
		n++
	}
	fresh := room[:min(n, len(room))]
	if n > len(room) {
		fresh = make([]*outcome, n)
	}
	for out := c.last; out != until; out = out.prev {
		n--
		fresh[n] = out
	}
	return fresh
}

// addVary adds the fields to Vary that are not in it.
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
