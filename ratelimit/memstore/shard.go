package memstore

import (
	"sync"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// shard is a part of a [Store] with its own lock and bounds. All counters of a key are in the same shard, and so its lock
// makes a group atomic.
type shard struct {
	mu          sync.Mutex
	table       table
	arena       arena
	generations int64 // the number of counters that have been made
	evictPos    int   // the slot at which evict continues
	sweepPos    int   // the slot at which sweep continues

	maxUsed  int
	maxBytes int64
	denies   bool // DenyNew

	_ [64]byte // keeps the next shard's lock on another cache line
}

// noBlock is stored instead of a block's reference in an entry whose block has not been made yet.
const noBlock = -1

// do runs a group of ops. key is the hash of the group's key.
func (s *shard) do(ops []ratelimit.Op, out []ratelimit.Result, key uint64, now int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := group{shard: s, ops: ops, out: out, key: key, now: now}
	return g.do()
}

// take is a fast path of do for a single take without Prepaid and Block. If the counter does not exist or needs more room,
// take changes nothing and returns false. out must be zero.
func (s *shard) take(r *rule, n int64, out *ratelimit.Result, key uint64, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.table.find(r.hash(key))
	if e == nil {
		return false
	}
	st := s.state(e)
	a := r.algorithm()
	allowed, fit := a.passes(st, r, n, now)
	if !allowed {
		r.check(a, st, n, now, out)
		out.Violated = true
		return true
	}
	if !fit || e.hash&1 != 0 && a.wordsNeeded(st, r, n, now, 0) != len(st.words) {
		return false
	}
	out.Receipt = a.charge(st, r, n, now, s.generations, 0)
	out.Receipt.Counter = e.hash
	r.check(a, st, 1, now, out)
	out.Allowed = true
	return true
}

// size returns the number of entries and their bytes.
func (s *shard) size() (used int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.used, s.bytes()
}

func (s *shard) bytes() int64 { return tableBytes(s.table.homes) + s.arena.bytes }

// state returns the state of the counter of an entry.
func (s *shard) state(e *entry) state {
	if e.hash&1 == 0 || e.a == noBlock {
		return state{entry: e}
	}
	return state{e, s.arena.words(e.a)}
}

// forget removes the entry that has a hash, if there is one.
func (s *shard) forget(hash uint64) {
	if s.table.find(hash) != nil {
		s.remove(int(s.table.slotOf(hash)))
	}
}

// remove removes the entry in a slot and frees the entry's block.
func (s *shard) remove(slot int) {
	e := s.table.slots[slot]
	s.table.remove(slot)
	if e.hash&1 != 0 {
		s.freeBlock(e.a)
	}
}

// freeBlock frees a block, unless ref is noBlock.
func (s *shard) freeBlock(ref int64) {
	if ref == noBlock {
		return
	}
	if moved := s.arena.free(ref); moved != 0 {
		s.table.find(moved).a = ref
	}
}
