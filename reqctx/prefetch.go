package reqctx

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/lazy"
)

// ErrNoPrefetch means that a property is not marked with Prop.Prefetch.
var ErrNoPrefetch = errors.New("reqctx: the property is not marked as safe to prefetch")

// prefetchUsed spares programs that never prefetch what Prefetched costs.
var prefetchUsed atomic.Bool

// prefetch is the state of a resolution that no reader began. While it is unread, its
// outcome is in no slot: the attempt stays in the context's list until its first reader
// publishes it. So it is neither committed nor in Vary, and a hit needs no further check.
type prefetch struct {
	unread   atomic.Bool // changes to false once, under c.mu
	returned atomic.Bool // Resolve has returned, which may be after its timeout
	outcome  *outcome    // of the attempt, nil until it is complete; guarded by c.mu
	uses     []*attempt  // what the resolution has read that is unread too; guarded by c.mu
	next     *attempt    // the one that was prefetched before; immutable
}

// Prefetch begins to resolve properties that the request is likely to read, each on a
// goroutine of its own, and returns at once. They start together, so that their calls of
// a store usually share a round trip. Properties that are resolved, being resolved, set
// or preset are left alone.
//
// Prefetch changes when a property is resolved and nothing else. Until it is read, its
// Vary fields are not added, its Commit function is not called and Peek does not see it;
// the same holds for the properties marked with Prop.Prefetch that it reads itself. A
// reader gets the outcome, and waits for it if necessary. When the request closes, what is
// still running is cancelled. An error that nothing has read is not reported, and a panic
// is logged as a warning; [Info] and the [Observer] have both.
//
// Prefetch returns an error, and begins nothing, if c's registry has no such property or
// one is not marked with Prop.Prefetch, and [ErrFinished] once the request is closing.
func (c *Context) Prefetch(names ...string) error {
	if err := c.table.checkPrefetch(names); err != nil {
		return err
	}
	prefetchUsed.Store(true)
	base := c.tasks().Context()
	for _, name := range names {
		b := c.table.public(name)
		if b.preset {
			continue
		}
		a, first, _, err := c.join(b, base, nil, true)
		if err != nil {
			return err
		}
		if first {
			a.Start(nil, false)
		}
	}
	return nil
}

// CheckPrefetch returns the error that [Context.Prefetch] would return for these names:
// [ErrNoProperty] or [ErrNoPrefetch].
func (reg *Registry) CheckPrefetch(names ...string) error { return reg.tab.Load().checkPrefetch(names) }

func (t *table) checkPrefetch(names []string) error {
	for _, name := range names {
		switch b := t.public(name); {
		case b == nil:
			return t.unknown(name)
		case !b.prefetch && !b.preset:
			return fmt.Errorf("%w: %q", ErrNoPrefetch, name)
		}
	}
	return nil
}

// Prefetched reports whether ctx was passed to a resolution that Prefetch began, directly
// or through another property, and that nothing has read so far.
func Prefetched(ctx context.Context) bool {
	if !prefetchUsed.Load() {
		return false
	}
	f := lazy.Current(ctx)
	if f == nil {
		return false
	}
	a, _ := f.Work().(*attempt)
	return a.unread()
}

// PrefetchPending reports whether [Context.Finish] would have to wait for a resolution
// that Prefetch began and nothing has read.
func (c *Context) PrefetchPending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for a := c.prefetches; a != nil; a = a.prefetch.next {
		if !a.prefetch.returned.Load() && a.unread() {
			return true
		}
	}
	return false
}

// addPrefetch makes a, which is new, unread. c.mu is held.
func (c *Context) addPrefetch(a *attempt) {
	a.prefetch = &prefetch{next: c.prefetches}
	a.prefetch.unread.Store(true)
	c.prefetches = a
}

// unread reports whether Prefetch began a and nothing has read it. a may be nil.
func (a *attempt) unread() bool { return a != nil && a.prefetch != nil && a.prefetch.unread.Load() }

// use records that a's resolution reads u. If a was read meanwhile, u is, too.
func (a *attempt) use(u *attempt) {
	a.c.mu.Lock()
	unread := a.unread()
	if unread {
		a.prefetch.uses = append(a.prefetch.uses, u)
	}
	a.c.mu.Unlock()
	if !unread {
		u.read()
	}
}

// read makes a prefetched attempt, and what it uses, like those that a reader began, and
// publishes the outcome if it is there, after those of what it uses: it is closed before
// them. One lock at a time is held, since what it uses can belong to another context.
func (a *attempt) read() {
	c, p := a.c, a.prefetch
	c.mu.Lock()
	if !p.unread.Load() {
		c.mu.Unlock()
		return
	}
	p.unread.Store(false)
	a.out.unread = false
	uses := p.uses
	p.uses = nil
	c.mu.Unlock()
	for _, u := range uses {
		u.read()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.outcome != nil && c.detach(a) {
		c.addOutcome(a.out, true)
	}
}

// discard removes a from the list that readers join from. An outcome that nothing has
// published is only closed. c.mu is held.
func (c *Context) discard(a *attempt) {
	if c.detach(a) && a.prefetch != nil && a.prefetch.outcome != nil {
		c.addOutcome(a.out, false)
	}
}

// discardUnread discards what is complete, after what it uses.
func (c *Context) discardUnread() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for a := c.prefetches; a != nil; a = a.prefetch.next {
		c.discardTree(a)
	}
}

func (c *Context) discardTree(a *attempt) {
	uses := a.prefetch.uses
	a.prefetch.uses = nil
	for _, u := range uses {
		if u.c == c {
			c.discardTree(u)
		}
	}
	if a.prefetch.outcome != nil {
		c.discard(a)
	}
}

// prefetchOf returns the newest attempt at b that was prefetched, or nil. c.mu is held.
func (c *Context) prefetchOf(b *binding) *attempt {
	a := c.prefetches
	for a != nil && a.out.b != b {
		a = a.prefetch.next
	}
	return a
}
