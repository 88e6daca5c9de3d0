package reqctx

import "context"

// set stores v and makes it b's value.
func set[T any](ctx context.Context, c *Context, b *binding, v T) error {
	if err := c.writable(b); err != nil {
		return err
	}
	if store := b.ops.(provided[T]).Store; store != nil {
		if err := store(ctx, v); err != nil {
			return err
		}
	}
	cell := &cell[T]{val: v}
	cell.self, cell.b, cell.source = cell, b, wasSet
	return c.overtake(b, &cell.outcome)
}

// overtake publishes out in place of whatever b came to, and gives it to those
// who wait for a resolution.
func (c *Context) overtake(b *binding, out *outcome) error {
	c.mu.Lock()
	if err := c.writableLocked(b); err != nil {
		c.mu.Unlock()
		return err
	}
	a := c.detachAt(b)
	if a != nil {
		a.settle(out)
	}
	c.publish(out)
	c.mu.Unlock()
	if a != nil {
		a.Release()
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

// invalidate empties b's slot. A resolution in progress goes on for those who
// wait for it; nobody joins it any longer.
func (c *Context) invalidate(b *binding) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase >= closing {
		return named(ErrFinished, b.name)
	}
	c.slots[b.slot].Store(nil)
	c.detachAt(b)
	return nil
}
