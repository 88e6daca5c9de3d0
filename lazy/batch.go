package lazy

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/lazyreq/lazyreq/internal/yield"
)

// ErrMissing is the error of [Batch.Get] for a key that the batch's function returned
// no value for.
var ErrMissing = errors.New("lazy: no value for the key")

// Batch answers Gets that are made at the same moment with one call of its function.
// It keeps no values; a [NewMemo] over its Get does.
//
// The first Get yields the processor, up to four times, as long as other Gets come
// meanwhile, and then calls the function; a Get that comes later is in the next call.
// There is no timer, and a Get never waits for another computation to finish or to
// block. So goroutines that are started together usually share a call or two, but this
// is not guaranteed.
//
// The Gets of a call have the same [Scope], that of their contexts, so one Batch serves
// any number of scopes. The function runs under the scope's context, even if the
// callers leave. Without a scope it runs under the values of the first caller's
// context, and is cancelled when the last caller has left.
//
// A Batch is safe for concurrent use.
type Batch[K comparable, V any] struct {
	fn    func(ctx context.Context, keys []K) (map[K]V, error)
	yield func(size func() int) // yieldAtLeastOnce, unless a test replaces it

	mu         sync.Mutex                  // never held while user code runs
	collecting map[*Scope]*batchCall[K, V] // by the callers' scope, nil for none
}

// batchCall is one call of a Batch's function.
type batchCall[K comparable, V any] struct {
	keys  []K // guarded by Batch.mu while the call collects, then final
	found *Value[map[K]V]
}

// NewBatch returns a Batch of fn. fn gets each key once, in the order of the Gets, and
// returns the values that it found, in a map that must not change afterwards.
func NewBatch[K comparable, V any](fn func(ctx context.Context, keys []K) (map[K]V, error)) *Batch[K, V] {
	return &Batch[K, V]{fn: fn, yield: yieldAtLeastOnce, collecting: make(map[*Scope]*batchCall[K, V])}
}

// yieldAtLeastOnce yields once even if the processor is busy: a Batch exists to save
// calls, each of which usually costs more than a yield.
func yieldAtLeastOnce(size func() int) {
	runtime.Gosched()
	yield.WhileGrowing(size)
}

// Get returns the value for key. An error or a panic of the function is an error or a
// panic of every Get of the call. Get returns [ErrMissing] if the function returned no
// value for key, and [context.Cause] if ctx ends first; the call goes on for the others.
func (b *Batch[K, V]) Get(ctx context.Context, key K) (V, error) {
	var zero V
	if ctx.Err() != nil {
		return zero, context.Cause(ctx)
	}
	_ = map[K]bool(nil)[key] // a key that cannot be hashed panics here, and not in the others' call
	s := ScopeOf(ctx)
	inline := s.outlivedBy(ctx.Done())
	flight, first := b.join(ctx, s, inline, key)
	if first {
		b.collect(s)
	}
	found, err := flight.await(ctx, first, inline)
	if err != nil {
		return zero, err
	}
	val, ok := found[key]
	if !ok {
		return zero, fmt.Errorf("%w: %v", ErrMissing, key)
	}
	return val, nil
}

// join adds key to the call that collects for s, and reports whether it is the first.
func (b *Batch[K, V]) join(ctx context.Context, s *Scope, inline bool, key K) (*valueFlight[map[K]V], bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.collecting[s]
	if c == nil {
		c = new(batchCall[K, V])
		c.found = &Value[map[K]V]{
			fn:    func(ctx context.Context) (map[K]V, error) { return b.fn(ctx, distinct(c.keys)) },
			scope: s,
			name:  func() string { return funcName(b.fn) },
		}
		b.collecting[s] = c
	}
	c.keys = append(c.keys, key)
	flight, first, _ := c.found.join(ctx, inline, true)
	return flight, first
}

// collect lets other Gets of s join the call, and then closes it to them.
func (b *Batch[K, V]) collect(s *Scope) {
	b.yield(func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.collecting[s].keys)
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.collecting, s)
}

// distinct removes repeated keys.
func distinct[K comparable](keys []K) []K {
	seen := make(map[K]bool, len(keys))
	return slices.DeleteFunc(keys, func(k K) bool {
		repeated := seen[k]
		seen[k] = true
		return repeated
	})
}
