package telemetry

import (
	"maps"
	"sync"
	"sync/atomic"
)

// maxEntries bounds the sets of attributes of a metric.
const maxEntries = 512

// cache keeps what is made of each key. Beyond maxEntries, a key is replaced by other(key), of
// which there must be few and which other leaves as it is. It is safe for concurrent use, and a hit neither locks nor allocates.
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
	entries := *c.entries.Load()
	v, ok := entries[key]
	if !ok && len(entries) >= maxEntries {
		key = c.other(key)
		v, ok = entries[key]
	}
	if ok {
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
