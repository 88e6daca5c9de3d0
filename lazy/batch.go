package lazy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/lazyreq/lazyreq/internal/yield"
)

// ErrMissing is the error for a key if the function of a [Batch] returned no value for it.
var ErrMissing = errors.New("lazy: no value for the key")

// BatchFunc loads the values of keys. The list contains each key once, in the order in which callers asked for them.
// Other keys in the result are ignored. The map must not be changed afterwards.
type BatchFunc[K comparable, V any] func(ctx context.Context, keys []K) (map[K]V, error)

// OrElse returns a function that returns the values of fn, and missing for each key that fn returns no value for.
func OrElse[K comparable, V any](fn BatchFunc[K, V], missing V) BatchFunc[K, V] {
	return func(ctx context.Context, keys []K) (map[K]V, error) {
		all := make(map[K]V, len(keys))
		for _, key := range keys {
			all[key] = missing
		}
		found, err := fn(ctx, keys)
		maps.Copy(all, found)
		return all, err
	}
}

// Batch loads values with a function that takes many keys. [Batch.GetAll] loads a list with one call. Calls of Get at
// the same moment usually share a call of the function, too.
//
// While a key is being loaded, all callers that ask for it share the call. A Batch of a [Scope] (made by [BatchIn])
// keeps the outcome like a [Value] of the scope. A stand-alone Batch (made by [NewBatch]) forgets the outcome. Its
// function gets the values of the first caller's context, although the callers may belong to different requests.
//
// The goroutine that begins a call yields the processor a few times, so that other ready goroutines can add their keys.
// There is no timer. A caller waits only for the call that loads its key.
//
// The function may read its own batch and other batches. If the call that loads a key is itself waiting for the
// reader, for example because of another key in the same call, the key is loaded again in a separate call. If a key
// needs itself, the error is a [*CycleError].
//
// A Batch is safe for concurrent use.
type Batch[K comparable, V any] struct {
	fn    BatchFunc[K, V]
	scope *Scope // nil: stand-alone
	name  func() string
	yield func(size func() int) // yieldAtLeastOnce, unless a test replaces it

	mu         sync.RWMutex           // never held while user code runs
	calls      map[K]*batchCall[K, V] // by key: in progress, or kept by the scope
	collecting *batchCall[K, V]       // the call that other callers add keys to, or nil
}

// batchCall is one call of a Batch's function.
type batchCall[K comparable, V any] struct {
	Value[map[K]V]
	keys []K // guarded by Batch.mu while the call collects, then final
}

// NewBatch returns a stand-alone batch of fn.
func NewBatch[K comparable, V any](fn BatchFunc[K, V]) *Batch[K, V] { return BatchIn(nil, "", fn) }

// BatchIn returns a batch of fn that belongs to the scope s, or a stand-alone batch if s is nil. The texts of cycles
// and panics contain the name. An empty name means the name of fn.
func BatchIn[K comparable, V any](s *Scope, name string, fn BatchFunc[K, V]) *Batch[K, V] {
	return &Batch[K, V]{
		fn:    fn,
		scope: s,
		name:  func() string { return cmp.Or(name, funcName(fn)) },
		yield: yieldAtLeastOnce,
		calls: make(map[K]*batchCall[K, V]),
	}
}

// yieldAtLeastOnce yields once even if the processor is busy: saving a call is usually worth it.
func yieldAtLeastOnce(size func() int) {
	runtime.Gosched()
	yield.WhileGrowing(size)
}

// Get returns the value for key, as [Batch.GetAll] does.
func (b *Batch[K, V]) Get(ctx context.Context, key K) (val V, err error) {
	if c := b.lookup(key); c != nil {
		if r := c.res.Load(); r != nil && r.panics == nil {
			return pick(r, key)
		}
	}
	vals, err := b.GetAll(ctx, []K{key})
	if err != nil {
		return val, err
	}
	return vals[0], nil
}

// GetAll returns the values for keys, in the order of keys. It makes one call for all keys that are neither loaded
// nor being loaded.
//
// GetAll returns the error of the first key that has an error. The error is [ErrMissing] if the function returned no
// value for the key; see [OrElse]. If the function panics, every caller that waits for it panics with a
// [*PanicError]. If ctx ends first, GetAll returns [context.Cause], and the call goes on for the other callers. If
// ctx has ended before, GetAll returns the cause even if all values are loaded. It panics if a key cannot be hashed.
func (b *Batch[K, V]) GetAll(ctx context.Context, keys []K) ([]V, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, key := range keys {
		_ = map[K]bool(nil)[key] // panics before another caller can wait for this one
	}
	caller, inline := Current(ctx), b.scope.outlivedBy(ctx)
	vals := make([]V, len(keys))
	var failed error
	var panics *PanicError
	for i, w := range b.ask(ctx, caller, inline, keys) { // also after an error: ask has joined all of these calls
		r, err := w.wait(ctx, caller, inline)
		for isCycleOfSeveral(err) {
			r, err = b.joinAnew(ctx, inline, keys[i]).wait(ctx, caller, inline)
		}
		if err == nil && r.panics != nil {
			panics = cmp.Or(panics, r.panics)
		} else if err == nil {
			vals[i], err = pick(r, keys[i])
		}
		failed = cmp.Or(failed, err)
	}
	if panics != nil {
		panics.Raise()
	}
	if failed != nil {
		return nil, failed
	}
	return vals, nil
}

// lookup returns the call that loads or has loaded key, or nil. It panics if key cannot be hashed.
func (b *Batch[K, V]) lookup(key K) *batchCall[K, V] {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.calls[key]
}

// ask joins the calls that load keys. If it has begun a call, it lets others add keys, and then starts the call.
func (b *Batch[K, V]) ask(ctx context.Context, caller *Flight, inline bool, keys []K) []valueWait[map[K]V] {
	waits := b.join(ctx, inline, keys)
	for i := range waits {
		if w := &waits[i]; w.start {
			b.collect()
			w.flight.Start(caller, inline)
			w.start = false
		}
	}
	return waits
}

// join joins the calls that load keys. If a key has no call, or one that was abandoned or not kept, join adds it to the
// call that collects, and begins one if necessary, which the caller has to start.
func (b *Batch[K, V]) join(ctx context.Context, inline bool, keys []K) []valueWait[map[K]V] {
	waits := make([]valueWait[map[K]V], len(keys))
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, key := range keys {
		if c := b.calls[key]; c != nil {
			c.mu.Lock()
			w, ok := c.joinPresent(true)
			c.mu.Unlock()
			if ok {
				waits[i] = w
				continue
			}
		}
		if b.collecting == nil {
			b.collecting = b.newCall()
		}
		c := b.collecting
		c.keys = append(c.keys, key)
		b.calls[key] = c
		waits[i] = c.join(ctx, inline, true)
	}
	return waits
}

// joinAnew joins a new call that loads only key.
func (b *Batch[K, V]) joinAnew(ctx context.Context, inline bool, key K) valueWait[map[K]V] {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.newCall(key)
	b.calls[key] = c
	return c.join(ctx, inline, true)
}

// collect lets other callers add keys to the call that collects, and then closes it to them.
func (b *Batch[K, V]) collect() {
	b.yield(func() int {
		b.mu.RLock()
		defer b.mu.RUnlock()
		return len(b.collecting.keys)
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.collecting = nil
}

func (b *Batch[K, V]) newCall(keys ...K) *batchCall[K, V] {
	c := new(batchCall[K, V])
	c.scope, c.name, c.keys = b.scope, b.name, keys
	c.fn = func(ctx context.Context) (map[K]V, error) {
		if b.scope == nil {
			defer b.forget(c)
		}
		Current(ctx).several = len(c.keys) > 1
		return b.fn(ctx, slices.Clone(c.keys))
	}
	return c
}

func (b *Batch[K, V]) forget(c *batchCall[K, V]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range c.keys {
		if b.calls[key] == c {
			delete(b.calls, key)
		}
	}
}

// pick returns the value for key from the outcome of a call that has not panicked.
func pick[K comparable, V any](r *result[map[K]V], key K) (val V, err error) {
	if r.err != nil {
		return val, r.err
	}
	val, ok := r.val[key]
	if !ok {
		return val, fmt.Errorf("%w: %v", ErrMissing, key)
	}
	return val, nil
}
