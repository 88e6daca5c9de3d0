package proxy

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// denialStreaks counts the consecutive denials of each key. A count begins again after a request of the key was
// allowed, or after its quota was full. denialStreaks stores hashes of keys. If it is full, a new key replaces a
// random one.
type denialStreaks struct {
	seed maphash.Seed
	n    atomic.Int64 // len(keys)

	mu   sync.Mutex
	keys map[uint64]denials
}

type denials struct {
	n     int64
	until time.Time // time when the quota is full again
}

// maxDenialKeys is the maximum number of keys in denialStreaks.
const maxDenialKeys = 1 << 14

func newDenialStreaks() *denialStreaks {
	return &denialStreaks{seed: maphash.MakeSeed(), keys: map[uint64]denials{}}
}

// increment counts a denial of a key and returns the number of consecutive denials. reset is the time until the key's
// quota is full again.
func (c *denialStreaks) increment(key string, reset time.Duration, now time.Time) int64 {
	h := maphash.String(c.seed, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	d, known := c.keys[h]
	if !known && len(c.keys) >= maxDenialKeys {
		for other := range c.keys {
			delete(c.keys, other)
			break
		}
	}
	if now.After(d.until) {
		d.n = 0
	}
	d.n, d.until = d.n+1, now.Add(reset)
	c.keys[h] = d
	c.n.Store(int64(len(c.keys)))
	return d.n
}

// reset removes a key after one of its requests was allowed.
func (c *denialStreaks) reset(key string) {
	h := maphash.String(c.seed, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, h)
	c.n.Store(int64(len(c.keys)))
}

// denialsInARow returns the number of consecutive denials of a key.
func (c *denialStreaks) denialsInARow(key string, now time.Time) int64 {
	h := maphash.String(c.seed, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.keys[h]; !now.After(d.until) {
		return d.n
	}
	return 0
}

// size returns the number of keys. If it is 0, callers need not call reset.
func (c *denialStreaks) size() int64 { return c.n.Load() }
