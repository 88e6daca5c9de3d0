package memstore

import (
	"math/bits"
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

// table finds the entries of a shard by their hash. It has no pointers, so that the
// garbage collector doesn't look into it.
//
// It is a hash table with linear probing whose entries are in the order of their hashes,
// gaps between them: an entry's home grows with its hash, it is at home or, if that was
// taken, right of it with no gap between, and so the search for one that isn't there
// ends as soon as one that is there. Beyond the homes there is a tail for those pushed out
// of the last of them; its last slot is always a gap, which ends every search.
type table struct {
	slots []entry
	homes uint64
	used  int
}

// entry is one counter in a shard. Pointers to entries are valid until the
// next insert or remove.
type entry struct {
	// hash is that of the key and the counter, 0 in a gap. Its lowest bit reports whether
	// the state has a block in the arena.
	hash uint64
	// until is when the counter equals a fresh one and may be forgotten, in microseconds.
	until int64
	// a and b are the state, as its algorithm understands it. If there is a block, a is where.
	a, b int64
}

const (
	entryBytes = 32
	minHomes   = 8
)

func tailSlots(homes uint64) uint64 { return 8 + homes/64 }

func (t *table) homeOf(hash uint64) uint64 {
	high, _ := bits.Mul64(hash, t.homes)
	return high
}

// find returns the entry of hash, nil if there is none.
func (t *table) find(hash uint64) *entry {
	if t.used == 0 {
		return nil
	}
	i := t.slotOf(hash)
	if t.slots[i].hash != hash {
		return nil
	}
	return &t.slots[i]
}

// slotOf returns where the entry of hash is, or would be inserted.
func (t *table) slotOf(hash uint64) uint64 {
	i := t.homeOf(hash)
	// A gap's 0 becomes the largest number.
	for t.slots[i].hash-1 < hash-1 {
		i++
	}
	return i
}

// full reports whether the table has to grow before it takes one more.
func (t *table) full() bool { return uint64(t.used) >= t.homes/8*7 }

// insert adds an empty entry of a hash that isn't there, and returns it; nil if the
// table's tail is full.
func (t *table) insert(hash uint64) *entry {
	i := t.slotOf(hash)
	gap := i
	for t.slots[gap].hash != 0 {
		gap++
	}
	if gap == uint64(len(t.slots)-1) {
		return nil
	}
	copy(t.slots[i+1:gap+1], t.slots[i:gap])
	t.slots[i] = entry{hash: hash}
	t.used++
	return &t.slots[i]
}

// remove makes a gap of slot i, and moves those that may be nearer to their homes now.
func (t *table) remove(i int) {
	end := i + 1
	for t.slots[end].hash != 0 && t.homeOf(t.slots[end].hash) < uint64(end) {
		end++
	}
	copy(t.slots[i:], t.slots[i+1:end])
	t.slots[end-1] = entry{}
	t.used--
}

// grownHomes returns how many homes the table has after it grows: a quarter more.
func (t *table) grownHomes() uint64 { return max(minHomes, (t.homes+t.homes/4+7)/8*8) }

// grow gives the table that many homes. It takes the time of copying it.
func (t *table) grow(homes uint64) {
	for ; ; homes += homes / 4 {
		bigger := table{slots: make([]entry, homes+tailSlots(homes)), homes: homes, used: t.used}
		if bigger.copyFrom(t.slots) {
			*t = bigger
			return
		}
	}
}

// copyFrom copies entries, which are in order, and reports whether they had room.
func (t *table) copyFrom(from []entry) bool {
	var next uint64
	for i := range from {
		if from[i].hash == 0 {
			continue
		}
		next = max(next, t.homeOf(from[i].hash))
		if next == uint64(len(t.slots)-1) {
			return false
		}
		t.slots[next] = from[i]
		next++
	}
	return true
}

// tableBytes is what a table of that many homes takes.
func tableBytes(homes uint64) int64 {
	if homes == 0 {
		return 0
	}
	return allocatedBytes(entryBytes * int64(homes+tailSlots(homes)))
}

// allocatedBytes is what the allocator takes for n bytes: whole pages if they are many. What
// it rounds up a small allocation by is small.
func allocatedBytes(n int64) int64 {
	const page = 8 << 10
	if n <= 32<<10 {
		return n
	}
	return (n + page - 1) / page * page
}
