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

// ErrMissing is the error of a [Batch] for a key that its function returned no value for.
var ErrMissing = errors.New("lazy: no value for the key")

// BatchFunc loads the values of keys. It gets each key once, in the order in which they
// were asked for, and returns the values that it finds. The map must not change
// afterwards; other keys in it are ignored.
type BatchFunc[K comparable, V any] func(ctx context.Context, keys []K) (map[K]V, error)

// OrElse returns a function that returns the values of fn, and missing for each key that
// fn returns no value for.
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

// Batch loads values with a function of many keys. [Batch.GetAll] loads a list with one
// call. Gets that are made at the same moment usually share a call as well.
//
// While a key is being loaded, all callers that ask for it share the call. A Batch of a
// [Scope] (made by [BatchIn]) then keeps the outcome as a [Value] of the scope does. A
// stand-alone Batch (made by [NewBatch]) forgets it. Its function runs under the values of
// the first caller's context, although the callers may belong to different requests.
//
// The goroutine that begins a call yields the processor a few times, so that other ready
// goroutines can add their keys. There is no timer, and no caller waits for another
// computation to finish or to block, except for the one that loads its key.
//
// The function may read its own batch and others. If the call that loads a key waits for
// the reader, for example because it loads another key too, then the key is loaded again
// in a call of its own. A key that needs itself is a [*CycleError].
//
// A Batch is safe for concurrent use.
type Batch[K comparable, V any] struct {
	fn    BatchFunc[K, V]
	scope *Scope // nil: stand-alone
	name  func() string
	yield func(size func() int) // yieldAtLeastOnce, unless a test replaces it

	mu         sync.RWMutex           // never held while user code runs
	calls      map[K]*batchCall[K, V] // by key: in progress, or kept by the scope
	collecting *batchCall[K, V]       // the call that takes more keys, or nil
}

// batchCall is one call of a Batch's function.
type batchCall[K comparable, V any] struct {
	Value[map[K]V]
	keys []K // guarded by Batch.mu while the call collects, then final
}

// NewBatch returns a stand-alone batch of fn.
func NewBatch[K comparable, V any](fn BatchFunc[K, V]) *Batch[K, V] { return BatchIn(nil, "", fn) }

// BatchIn returns a batch of fn that belongs to the scope s, or a stand-alone one if s is
// nil. Cycles and panics show its name. An empty name means that of fn.
func BatchIn[K comparable, V any](s *Scope, name string, fn BatchFunc[K, V]) *Batch[K, V] {
	return &Batch[K, V]{
		fn:    fn,
		scope: s,
		name:  func() string { return cmp.Or(name, funcName(fn)) },
		yield: yieldAtLeastOnce,
		calls: make(map[K]*batchCall[K, V]),
	}
}

// yieldAtLeastOnce yields once even if the processor is busy: a Batch exists to save
// calls, each of which usually costs more than a yield.
func yieldAtLeastOnce(size func() int) {
	runtime.Gosched()
	yield.WhileGrowing(size)
}

// Get returns the value for key, as [Batch.GetAll] does.
func (b *Batch[K, V]) Get(ctx context.Context, key K) (val V, err error) {
	if c := b.lookup(key); c != nil {
		if r := c.res.Load(); r != nil {
			return pick(r, key)
		}
	}
	vals, err := b.GetAll(ctx, []K{key})
	if err != nil {
		return val, err
	}
	return vals[0], nil
}

// GetAll returns the values for keys, in the order of keys. One call loads all keys that
// are not there and that no other call is loading.
//
// The error of GetAll is that of the first key that has one. It is [ErrMissing] if the
// function returned no value for the key; see [OrElse]. A panic of the function is a panic
// of every caller that waits for it, with a [*PanicError]. If ctx ends first, GetAll
// returns [context.Cause], and the call goes on for the others. It returns the cause of a
// ctx that has ended even if all values are there. GetAll panics if a key cannot be hashed.
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
	var panicked *result[map[K]V]
	for i, w := range b.ask(ctx, caller, inline, keys) { // all of them, because ask has joined them
		r, err := w.wait(ctx, caller, inline)
		for isCycleOfSeveral(err) {
			r, err = b.joinAnew(ctx, inline, keys[i]).wait(ctx, caller, inline)
		}
		if err == nil && r.panics != nil {
			panicked = cmp.Or(panicked, r)
		} else if err == nil {
			vals[i], err = pick(r, keys[i])
		}
		failed = cmp.Or(failed, err)
	}
	if panicked != nil {
		_, failed = panicked.deliver(b.scope)
	}
	if failed != nil {
		return nil, failed
	}
	return vals, nil
}

// lookup returns the call that loads key or has loaded it, or nil. It panics, without the
// lock, if key cannot be hashed.
func (b *Batch[K, V]) lookup(key K) *batchCall[K, V] {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.calls[key]
}

// ask joins the calls that load keys. If it has begun one, it collects for that and starts it.
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

// join joins the calls that load keys. It adds a key without a call, or with one that was abandoned
// or not kept, to the call that collects. If there is none it begins one, for the caller to start.
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
