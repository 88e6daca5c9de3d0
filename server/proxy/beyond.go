package proxy

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// beyond counts how far beyond its limit each key went: the denials since a request of it
// was allowed for the last time, or since its quota was full again. It is bounded: keys are
// known by a hash, and of too many, those are forgotten that will be the first to be over.
type beyond struct {
	seed   maphash.Seed
	total  atomic.Int64 // keys in all shards
	shards [16]beyondShard
}

type beyondShard struct {
	mu   sync.Mutex
	keys map[uint64]denials
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
		b.shards[i].keys = map[uint64]denials{}
	}
	return b
}

func (b *beyond) shard(key string) (*beyondShard, uint64) {
	h := maphash.String(b.seed, key)
	return &b.shards[h%uint64(len(b.shards))], h
}

// deny counts a denial of a key, and returns how many it was in a row. Its quota will be
// full after reset.
func (b *beyond) deny(key string, reset time.Duration, now time.Time) int64 {
	s, h := b.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	d, known := s.keys[h]
	switch {
	case known:
	case len(s.keys) >= beyondKeys:
		s.evict(now)
	default:
		b.total.Add(1)
	}
	if now.After(d.until) {
		d.n = 0
	}
	d.n, d.until = d.n+1, now.Add(reset)
	s.keys[h] = d
	return d.n
}

// evict forgets one of a few keys, whichever a map gives first.
func (s *beyondShard) evict(now time.Time) {
	var victim uint64
	var soonest time.Time
	looked := 0
	for key, d := range s.keys {
		if looked == 0 || d.until.Before(soonest) {
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
	s, h := b.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.keys[h]; known {
		delete(s.keys, h)
		b.total.Add(-1)
	}
}

// of returns how far beyond its limit a key is.
func (b *beyond) of(key string, now time.Time) int64 {
	s, h := b.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.keys[h]; !now.After(d.until) {
		return d.n
	}
	return 0
}

// size returns of how many keys something is known, so that one asks only if there are any.
func (b *beyond) size() int64 { return b.total.Load() }
