package telemetry

import "sync"

// maxEntries is the maximum number of attribute sets of a metric, without those of other.
const maxEntries = 512

// cache memoizes a function of a key. Once it holds maxEntries keys, it replaces a new key with other(key), which
// must return few distinct keys and leave them unchanged. It is safe for concurrent use.
type cache[K comparable, V any] struct {
	make  func(K) V
	other func(K) K

	mu      sync.Mutex
	entries map[K]V
}

func newCache[K comparable, V any](make func(K) V, other func(K) K) *cache[K, V] {
	return &cache[K, V]{make: make, other: other, entries: map[K]V{}}
}

func (c *cache[K, V]) get(key K) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.entries[key]
	if !ok && len(c.entries) >= maxEntries {
		key = c.other(key)
		v, ok = c.entries[key]
	}
	if !ok {
		v = c.make(key)
		c.entries[key] = v
	}
	return v
}
