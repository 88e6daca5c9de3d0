package proxy

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// denialStreaks counts the denials in a row of each key: since a request of it was allowed, or
// since its quota was full. It is bounded: keys are known by their hash, and when there are too
// many, a key is evicted whose count ends early.
type denialStreaks struct {
	seed maphash.Seed
	n    atomic.Int64 // len(keys)

	mu   sync.Mutex
	keys map[uint64]denials
}

type denials struct {
	n     int64
	until time.Time // when the quota is full again
}

// maxDenialKeys bounds the keys.
const maxDenialKeys = 1 << 14

func newDenialStreaks() *denialStreaks {
	return &denialStreaks{seed: maphash.MakeSeed(), keys: map[uint64]denials{}}
}

// increment counts a denial of a key, whose quota is full after reset, and returns how many it was
// in a row.
func (c *denialStreaks) increment(key string, reset time.Duration, now time.Time) int64 {
	h := maphash.String(c.seed, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	d, known := c.keys[h]
	if !known && len(c.keys) >= maxDenialKeys {
		c.evict(now)
	}
	if now.After(d.until) {
		d.n = 0
	}
	d.n, d.until = d.n+1, now.Add(reset)
	c.keys[h] = d
	c.n.Store(int64(len(c.keys)))
	return d.n
}

// evict removes the first to end of eight keys that the map happens to return first.
func (c *denialStreaks) evict(now time.Time) {
	var victim uint64
	var soonest time.Time
	seen := 0
	for key, d := range c.keys {
		if seen == 0 || d.until.Before(soonest) {
			victim, soonest = key, d.until
		}
		if seen++; seen == 8 || now.After(soonest) {
			break
		}
	}
	delete(c.keys, victim)
}

// reset forgets a key, a request of which was allowed.
func (c *denialStreaks) reset(key string) {
	h := maphash.String(c.seed, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, h)
	c.n.Store(int64(len(c.keys)))
}

// denialsInARow returns the number of denials of a key in a row.
func (c *denialStreaks) denialsInARow(key string, now time.Time) int64 {
	h := maphash.String(c.seed, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := c.keys[h]; !now.After(d.until) {
		return d.n
	}
	return 0
}

// size returns the number of keys. A caller that gets 0 need not call allow.
func (c *denialStreaks) size() int64 { return c.n.Load() }
