package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"
)

// maxEntries is the maximum number of attribute sets of a metric, without those of other.
const maxEntries = 512

// cache memoizes a function of a key. Once it holds maxEntries keys, it replaces a new key with other(key), which
// must return few distinct keys and leave them unchanged. It is safe for concurrent use. A hit neither locks nor
// allocates.
type cache[K comparable, V any] struct {
	make  func(K) V
	other func(K) K

	mu      sync.Mutex // serialises changes
	entries atomic.Pointer[map[K]V]
}

func newCache[K comparable, V any](make func(K) V, other func(K) K) *cache[K, V] {
	c := &cache[K, V]{make: make, other: other}
	c.entries.Store(&map[K]V{})
	return c
}

func (c *cache[K, V]) get(key K) V {
	if v, ok := (*c.entries.Load())[key]; ok {
		return v
	}
	return c.add(key)
}

func (c *cache[K, V]) add(key K) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	entries := *c.entries.Load()
	if len(entries) >= maxEntries {
		key = c.other(key)
	}
	if v, ok := entries[key]; ok {
		return v
	}
	entries = maps.Clone(entries)
	v := c.make(key)
	entries[key] = v
	c.entries.Store(&entries)
	return v
}
