package reqctx

import "context"

// set stores v and makes it b's value.
func set[T any](ctx context.Context, c *Context, b *binding, v T) error {
	if err := c.writable(b); err != nil {
		return err
	}
	p := b.ops.(provided[T])
	if p.Store != nil {
		if err := p.Store(ctx, v); err != nil {
			return err
		}
	}
	out := p.newOutcome(b)
	out.self.(*cell[T]).val, out.set = v, true
	return c.overtake(out)
}

// overtake publishes out in place of its property's outcome. The readers of a
// resolution in progress get it as well.
func (c *Context) overtake(out *outcome) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.writableLocked(out.b); err != nil {
		return err
	}
	c.addOutcome(out, true)
	if a := *c.attemptOf(out.b); a != nil {
		c.detach(a)
		a.Complete(out)
	}
	return nil
}

func (c *Context) writable(b *binding) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writableLocked(b)
}

func (c *Context) writableLocked(b *binding) error {
	switch {
	case c.phase >= closing:
		return named(ErrFinished, b.name)
	case c.commit != uncommitted:
		return named(ErrCommitted, b.name)
	default:
		return nil
	}
}
