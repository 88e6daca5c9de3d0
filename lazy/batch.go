package lazy

import (
	"context"
	"errors"
	"fmt"
)

// ErrMissing is what [Batch.Get] returns for a key that the batch's function
// returned no value for.
var ErrMissing = errors.New("lazy: no value for the key")

// Batch answers many Gets of one moment with one call. When the moment has come is
// said at [Gather]. It keeps nothing: [NewMemo] over its Get does.
type Batch[K comparable, V any] struct {
	gather *Gather[*want[K, V]]
}

// want is one Get: its key, and what comes of it.
type want[K comparable, V any] struct {
	key K
	val V
	err error
}

// NewBatch returns a batch that gets values from fn. fn is called with each key
// once, in the order of the Gets, and returns what it has found.
func NewBatch[K comparable, V any](fn func(ctx context.Context, keys []K) (map[K]V, error)) *Batch[K, V] {
	return &Batch[K, V]{gather: NewGather(func(ctx context.Context, wants []*want[K, V]) error {
		found, err := fn(ctx, distinct(wants))
		if err != nil {
			return err
		}
		for _, w := range wants {
			var ok bool
			if w.val, ok = found[w.key]; !ok {
				w.err = fmt.Errorf("%w: %v", ErrMissing, w.key)
			}
		}
		return nil
	})}
}

// Get returns the value for key. An error of the function is that of every Get
// of its call; a key without a value is [ErrMissing].
func (b *Batch[K, V]) Get(ctx context.Context, key K) (V, error) {
	w := &want[K, V]{key: key}
	if err := b.gather.Do(ctx, w); err != nil {
		var zero V
		return zero, err
	}
	return w.val, w.err
}

func distinct[K comparable, V any](wants []*want[K, V]) []K {
	keys := make([]K, 0, len(wants))
	seen := make(map[K]bool, len(wants))
	for _, w := range wants {
		if !seen[w.key] {
			seen[w.key] = true
			keys = append(keys, w.key)
		}
	}
	return keys
}
