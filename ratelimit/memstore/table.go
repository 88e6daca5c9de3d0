package memstore

import "math/bits"

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

// entry is what a shard remembers of one counter. Pointers to entries are good until the
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
