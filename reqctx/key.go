package reqctx

import (
	"context"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/lazy"
)

// Key identifies a property by its name and has the type of its value. Make keys once, in package-level variables,
// because each key takes a little memory in every later registry. Keys are comparable. The zero Key does not belong
// to any property.
type Key[T any] struct {
	id   int32
	name string
}

var lastID atomic.Int32

// byName is the id that makes lookup look for a property by its name.
const byName = -1

// NewKey returns a new key. [Get], errors and measurements use the name, which must be unique within a registry.
func NewKey[T any](name string) Key[T] {
	return Key[T]{id: lastID.Add(1), name: name}
}

// Name returns the property's name.
func (k Key[T]) Name() string { return k.name }

// String returns the property's name.
func (k Key[T]) String() string { return k.name }

// Get returns the property of ctx's request, resolving it first if necessary. All readers of a request share one
// resolution and its outcome, even if it is an error or a panic ([*lazy.PanicError]). If ctx ends first, Get returns
// [context.Cause], and the resolution goes on for the other readers.
//
// Reading a resolved property does not allocate. With the request's own context, it costs one atomic load.
func (k Key[T]) Get(ctx context.Context) (T, error) {
	c, ok := ctx.(*Context)
	if !ok {
		c, _ = ctx.Value(contextKey{}).(*Context) // From, which is not inlined
	}
	if c != nil {
		if index := c.table.index; int(k.id) < len(index) {
			if out := c.slots[index[k.id]].Load(); out != nil {
				if cell, ok := out.self.(*cell[T]); ok {
					return cell.val, cell.err
				}
			}
		}
	}
	return k.get(ctx)
}

func (k Key[T]) get(ctx context.Context) (val T, err error) {
	c, b, err := lookup(ctx, k.id, k.name)
	if err != nil {
		return val, err
	}
	out, err := c.resolve(ctx, b)
	if err != nil {
		return val, err
	}
	return deliver[T](out)
}

// Require resolves the property as Get does, and returns its error.
func (k Key[T]) Require(ctx context.Context) error {
	_, err := k.Get(ctx)
	return err
}

// deliver returns an outcome's value and error, or raises its panic.
func deliver[T any](out *outcome) (T, error) {
	if out.panics != nil {
		out.raised.Store(true)
		out.panics.Raise()
	}
	cell := out.self.(*cell[T]) // nil only after a panic
	return cell.val, cell.err
}

// Peek returns the outcome, and reports whether the property has an outcome. It never blocks and never resolves. A
// kept panic is returned as a [*lazy.PanicError]. If ok is false, err is nil unless the property can never have an
// outcome in ctx.
func (k Key[T]) Peek(ctx context.Context) (val T, err error, ok bool) {
	c, b, err := lookup(ctx, k.id, k.name)
	if err != nil {
		return val, err, false
	}
	out := c.slots[b.slot].Load()
	if out == nil {
		if c.closing() {
			err = named(ErrFinished, b.name)
		}
		return val, err, false
	}
	if cell, ok := out.self.(*cell[T]); ok {
		return cell.val, cell.err, true
	}
	return val, out.err, true
}

// Owner returns the request that has the property: the request of ctx, or a request around it.
func (k Key[T]) Owner(ctx context.Context) (*Context, error) {
	c, b, err := lookup(ctx, k.id, k.name)
	if err == nil && c.closing() {
		err = named(ErrFinished, b.name)
	}
	return c, err
}

// Start begins to resolve the property on a new goroutine, unless it is resolved or being resolved, and returns at once.
// It returns [context.Cause] if ctx has ended.
func (k Key[T]) Start(ctx context.Context) error {
	c, b, err := lookup(ctx, k.id, k.name)
	if err != nil {
		return err
	}
	return c.startEarly(ctx, b)
}

// Set makes v the property's value for the rest of the request, after the property's Store function, if there is one, has
// accepted it. Readers that wait for a resolution get v. Set returns [ErrCommitted] once the header has gone out.
func (k Key[T]) Set(ctx context.Context, v T) error {
	c, b, err := lookup(ctx, k.id, k.name)
	if err != nil {
		return err
	}
	return set(ctx, c, b, v)
}

// Invalidate forgets the outcome, so that the next Get resolves the property again. Readers that already wait get the
// outcome of the resolution that they wait for.
func (k Key[T]) Invalidate(ctx context.Context) error {
	c, b, err := lookup(ctx, k.id, k.name)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase >= closing {
		return named(ErrFinished, b.name)
	}
	c.slots[b.slot].Store(nil)
	c.detach(c.attemptOf(b)) // the resolution goes on for its present readers
	return nil
}

// lookup returns the innermost context of ctx that has the property, and the property.
func lookup(ctx context.Context, id int32, name string) (*Context, *binding, error) {
	first := From(ctx)
	for c := first; c != nil; c = From(c.Context) {
		var b *binding
		if t := c.table; id == byName {
			b = t.public(name)
		} else if int(id) < len(t.index) {
			b = t.bind[t.index[id]]
		}
		if b != nil {
			return c, b, nil
		}
	}
	if first == nil {
		return nil, nil, named(ErrNoRequest, name)
	}
	return nil, nil, first.table.unknown(name)
}

// Batch is a property with an argument. It loads the values for many arguments with one call, as [lazy.Batch]
// describes. Use GetAll to load a list. Values and errors are kept for the request. Make batches once, in
// package-level variables, like keys.
type Batch[K comparable, V any] struct {
	key Key[*lazy.Batch[K, V]]
}

// NewBatch returns a new batch property. Functions that take a name, such as [Get], return its *lazy.Batch.
func NewBatch[K comparable, V any](name string) Batch[K, V] {
	return Batch[K, V]{NewKey[*lazy.Batch[K, V]](name)}
}

// ProvideBatch adds the property to a registry. fn runs under the request's context, like the function of
// [lazy.BatchIn]. ProvideBatch panics in the same cases as [Provide].
func ProvideBatch[K comparable, V any](reg *Registry, b Batch[K, V], fn func(ctx context.Context, args []K) (map[K]V, error)) {
	ProvideState(reg, b.key, func(ctx context.Context) (*lazy.Batch[K, V], error) {
		return lazy.BatchIn(From(ctx).tasks(), b.key.name, fn), nil
	})
}

// Get returns the value for arg in ctx's request, as [lazy.Batch.Get] does.
func (b Batch[K, V]) Get(ctx context.Context, arg K) (val V, err error) {
	batch, err := b.key.Get(ctx)
	if err != nil {
		return val, err
	}
	return batch.Get(ctx, arg)
}

// GetAll returns the values for args in ctx's request, as [lazy.Batch.GetAll] does.
func (b Batch[K, V]) GetAll(ctx context.Context, args []K) ([]V, error) {
	batch, err := b.key.Get(ctx)
	if err != nil {
		return nil, err
	}
	return batch.GetAll(ctx, args)
}
