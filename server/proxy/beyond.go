package proxy

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// beyond counts how far beyond its limit each key went: the denials since a request of it
// was allowed for the last time, or since its quota was full again. It is bounded: of too
// many keys, those are forgotten that will be the first to be over.
type beyond struct {
	seed   maphash.Seed
	total  atomic.Int64 // keys in all shards
	shards [16]beyondShard
}

type beyondShard struct {
	mu   sync.Mutex
	keys map[string]denials
}

type denials struct {
	n     int64
	until time.Time // after it, they are over
}

// beyondKeys is how many keys a shard has at most.
const beyondKeys = 1024

func newBeyond() *beyond {
	b := &beyond{seed: maphash.MakeSeed()}
	for i := range b.shards {
		b.shards[i].keys = map[string]denials{}
	}
	return b
}

func (b *beyond) shard(key string) *beyondShard {
	return &b.shards[maphash.String(b.seed, key)%uint64(len(b.shards))]
}

// deny counts n units that a key was denied, and returns how many it was in a row. Its
// quota will be full after reset.
func (b *beyond) deny(key string, n int64, reset time.Duration, now time.Time) int64 {
	s := b.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	d, known := s.keys[key]
	b.total.Add(-int64(len(s.keys)))
	if !known && len(s.keys) >= beyondKeys {
		s.evict(now)
	}
	if now.After(d.until) {
		d.n = 0
	}
	d.n, d.until = d.n+n, now.Add(reset)
	s.keys[key] = d
	b.total.Add(int64(len(s.keys)))
	return d.n
}

// evict forgets one of a few keys, whichever a map gives first.
func (s *beyondShard) evict(now time.Time) {
	var victim string
	var soonest time.Time
	looked := 0
	for key, d := range s.keys {
		if victim == "" || d.until.Before(soonest) {
			victim, soonest = key, d.until
		}
		if looked++; looked == 8 || now.After(soonest) {
			break
		}
	}
	delete(s.keys, victim)
}

// allow notes that a request of the key was allowed.
func (b *beyond) allow(key string) {
	s := b.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	b.total.Add(-int64(len(s.keys)))
	delete(s.keys, key)
	b.total.Add(int64(len(s.keys)))
}

// of returns how far beyond its limit a key is.
func (b *beyond) of(key string, now time.Time) int64 {
	s := b.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.keys[key]; !now.After(d.until) {
		return d.n
	}
	return 0
}

// any tells whether any key is beyond its limit, so that one asks only then.
func (b *beyond) any() bool { return b.total.Load() > 0 }
