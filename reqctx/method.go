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
	ProvideState(reg, m.key, func(ctx context.Context) (*lazy.Memo[K, V], error) {
		return lazy.MemoIn(From(ctx).tasks(), fn), nil
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

// Batch is a property with an argument that is resolved for many arguments at once, as
// [lazy.Batch] documents: GetAll is the way to load a list. Values and errors are kept
// for the request. Make batches once, in package-level variables, like keys.
type Batch[K comparable, V any] struct {
	key Key[*lazy.Batch[K, V]]
}

// NewBatch returns a new batch property. By name, the property is its *lazy.Batch.
func NewBatch[K comparable, V any](name string) Batch[K, V] {
	return Batch[K, V]{NewKey[*lazy.Batch[K, V]](name)}
}

// ProvideBatch adds the property to a registry. fn runs under the request's context, as
// the function of [lazy.BatchIn]. ProvideBatch panics as [Provide] does.
func ProvideBatch[K comparable, V any](reg *Registry, b Batch[K, V], fn func(ctx context.Context, args []K) (map[K]V, error)) {
	ProvideState(reg, b.key, func(ctx context.Context) (*lazy.Batch[K, V], error) {
		return lazy.BatchIn(From(ctx).tasks(), b.Name(), fn), nil
	})
}

// Name returns the property's name.
func (b Batch[K, V]) Name() string { return b.key.name }

// Get returns the value for arg in ctx's request. Gets that are made at the same moment
// usually share a call of the function.
func (b Batch[K, V]) Get(ctx context.Context, arg K) (val V, err error) {
	batch, err := b.key.Get(ctx)
	if err != nil {
		return val, err
	}
	return batch.Get(ctx, arg)
}

// GetAll returns the values for args in ctx's request, in the order of args. It loads
// with one call all values that the request does not have and is not loading.
func (b Batch[K, V]) GetAll(ctx context.Context, args []K) ([]V, error) {
	batch, err := b.key.Get(ctx)
	if err != nil {
		return nil, err
	}
	return batch.GetAll(ctx, args)
}
