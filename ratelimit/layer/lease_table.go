package layer

import (
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// leaseTable finds what is known of a key. To find takes no lock: chains only change at one
// place at a time, and a holding that is taken out of one still leads on. It is bounded:
// where there is no room, the ones that nobody has asked for lately make some.
type leaseTable struct {
	shards [leaseShards]leaseShard
}

const (
	leaseShards = 64
	// sweepChains is how many chains are looked at with each key that comes, so that old
	// ones never pile up.
	sweepChains = 4
)

type leaseShard struct {
	mu     sync.Mutex                // held by who changes a chain
	chains []atomic.Pointer[holding] // a power of two of them
	used   int                       // holdings
	most   int
	hand   int // the chain where sweep goes on
	_      [64]byte
}

func (t *leaseTable) init(keys int) {
	most := (keys + leaseShards - 1) / leaseShards
	for i := range t.shards {
		t.shards[i].most = most
		t.shards[i].chains = make([]atomic.Pointer[holding], 1<<bits.Len(uint(most-1)))
	}
}

func (t *leaseTable) shard(hash uint64) *leaseShard { return &t.shards[hash%leaseShards] }

func (s *leaseShard) chain(hash uint64) *atomic.Pointer[holding] {
	return &s.chains[hash/leaseShards%uint64(len(s.chains))]
}

// find returns the holding of a rule and key, nil if there is none.
func (t *leaseTable) find(hash uint64, r *leaseRule, key string) *holding {
	for h := t.shard(hash).chain(hash).Load(); h != nil; h = h.next.Load() {
		if h.hash == hash && h.rule == r && h.key == key {
			return h
		}
	}
	return nil
}

// hold returns the holding of a rule and key, a new one if there is none, and nil if there
// is no room for it.
func (t *leaseTable) hold(hash uint64, r *leaseRule, key string, now time.Duration) *holding {
	if h := t.find(hash, r, key); h != nil {
		return h
	}
	s := t.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := t.find(hash, r, key); h != nil {
		return h
	}
	s.sweep(now)
	if s.used == s.most {
		return nil
	}
	// The key may be a part of something large, which is not to be kept.
	h := &holding{rule: r, key: strings.Clone(key), hash: hash, left: notKnown}
	chain := s.chain(hash)
	h.next.Store(chain.Load())
	chain.Store(h)
	s.used++
	return h
}

// sweep takes out what is idle in a few chains, in turn.
func (s *leaseShard) sweep(now time.Duration) {
	for range min(sweepChains, len(s.chains)) {
		s.hand = (s.hand + 1) % len(s.chains)
		at := &s.chains[s.hand]
		for h := at.Load(); h != nil; h = at.Load() {
			if h.retire(now) {
				at.Store(h.next.Load())
				s.used--
			} else {
				at = &h.next
			}
		}
	}
}
