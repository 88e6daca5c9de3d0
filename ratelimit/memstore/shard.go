package memstore

import (
	"sync"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// shard is a part of a [Store] with a lock and bounds of its own. All counters of a
// key are in one shard, so that a group is atomic under one lock.
type shard struct {
	mu          sync.Mutex
	table       table
	arena       arena
	generations int64 // of counters, so far
	evictPos    int   // slot at which evict continues
	sweepPos    int   // slot at which sweep continues

	maxUsed  int
	maxBytes int64
	denies   bool // what is new, when it is full

	_ [64]byte // apart from the next shard's lock
}

// noBlock is the ref of an entry that has no block yet.
const noBlock = -1

// do runs one atomic group of ops on the key of a hash.
func (s *shard) do(ops []ratelimit.Op, out []ratelimit.Result, key uint64, now int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := group{shard: s, ops: ops, out: out, key: key, now: now}
	return g.do()
}

// take is a shortcut for the most frequent group: one take without Prepaid or a Block, of a
// counter that is known and doesn't need more room. It answers as do does. Everything
// else it leaves to do: it returns false and has changed nothing. out is zero.
func (s *shard) take(r *rule, n int64, out *ratelimit.Result, key uint64, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.table.find(r.hash(key))
	if e == nil {
		return false
	}
	st := s.state(e)
	allowed, fit := r.passes(st, n, now)
	if !allowed {
		r.check(st, n, now, out)
		out.Violated = true
		return true
	}
	if !fit || r.wordsNeeded(st, n, now, 0) != len(st.words) {
		return false
	}
	out.Receipt = r.charge(st, n, now, 0)
	out.Receipt.Counter = e.hash
	r.check(st, 1, now, out)
	out.Allowed = true
	return true
}

// size returns the number of entries and what they take.
func (s *shard) size() (used int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.used, s.bytes()
}

func (s *shard) bytes() int64 { return tableBytes(s.table.homes) + s.arena.bytes }

// state returns the state of an entry that there is.
func (s *shard) state(e *entry) state {
	if e.hash&1 == 0 || e.a == noBlock {
		return state{entry: e}
	}
	return state{e, s.arena.words(e.a)}
}

// forget removes the entry of hash, if there is one.
func (s *shard) forget(hash uint64) {
	if s.table.find(hash) != nil {
		s.remove(int(s.table.slotOf(hash)))
	}
}

// remove removes the entry of a slot and its block.
func (s *shard) remove(slot int) {
	e := s.table.slots[slot]
	s.table.remove(slot)
	if e.hash&1 != 0 {
		s.freeBlock(e.a)
	}
}

// freeBlock frees a block, if it is one.
func (s *shard) freeBlock(ref int64) {
	if ref == noBlock {
		return
	}
	if moved := s.arena.free(ref); moved != 0 {
		s.table.find(moved).a = ref
	}
}
