package reqctx

import (
	"context"

	"github.com/lazyreq/lazyreq/lazy"
)

// Memo is a property with an argument, which is computed at most once for each argument
// in a request. Make memos once, in package-level variables, like keys.
type Memo[K comparable, V any] struct {
	key Key[*lazy.Memo[K, V]]
}

// NewMemo returns a new memo property. By name, the property is its *lazy.Memo.
func NewMemo[K comparable, V any](name string) Memo[K, V] {
	return Memo[K, V]{NewKey[*lazy.Memo[K, V]](name)}
}

// ProvideMemo adds the property to a registry. fn runs under the request's context, at
// most once at a time for an argument; the request keeps its results and errors, except
// cancellations that are not the request's. ProvideMemo panics as [Provide] does.
func ProvideMemo[K comparable, V any](reg *Registry, m Memo[K, V], fn func(ctx context.Context, arg K) (V, error)) {
	Provide(reg, m.key, Prop[*lazy.Memo[K, V]]{
		Handle: true,
		Resolve: func(ctx context.Context) (*lazy.Memo[K, V], error) {
			return lazy.MemoIn(From(ctx).tasks(), fn), nil
		},
	})
}

// Name returns the property's name.
func (m Memo[K, V]) Name() string { return m.key.name }

// Get returns the result for arg in ctx's request, computing it first if necessary.
// Readers share it as they share a property.
func (m Memo[K, V]) Get(ctx context.Context, arg K) (V, error) {
	memo, err := m.key.Get(ctx)
	if err != nil {
		var zero V
		return zero, err
	}
	return memo.Get(ctx, arg)
}

// Batch is a property with an argument that is resolved for many arguments at once: Gets
// that are made at the same moment in a request, by the properties of a
// [Context.Resolve] for example, are one call, as [lazy.Batch] documents. A Get never
// waits for other computations of the request. Results are kept as those of a [Memo].
type Batch[K comparable, V any] struct {
	memo Memo[K, V]
}

// NewBatch returns a new batch property. By name, the property is a *lazy.Memo.
func NewBatch[K comparable, V any](name string) Batch[K, V] {
	return Batch[K, V]{NewMemo[K, V](name)}
}

// ProvideBatch adds the property to a registry. fn gets each argument at most once in a
// request and returns the values that it found; Get returns [lazy.ErrMissing] for the
// others. ProvideBatch panics as [Provide] does.
func ProvideBatch[K comparable, V any](reg *Registry, b Batch[K, V], fn func(ctx context.Context, args []K) (map[K]V, error)) {
	batch := lazy.NewBatch(fn) // it keeps the requests apart by their scopes
	ProvideMemo(reg, b.memo, batch.Get)
}

// Name returns the property's name.
func (b Batch[K, V]) Name() string { return b.memo.Name() }

// Get returns the result for arg in ctx's request.
func (b Batch[K, V]) Get(ctx context.Context, arg K) (V, error) { return b.memo.Get(ctx, arg) }
