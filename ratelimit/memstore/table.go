package memstore

import "math/bits"

// table finds the entries of a shard by hash. It has no pointers, so the garbage collector does not scan it.
//
// The table uses linear probing and keeps entries in the order of their hashes: the home of an entry
// increases with its hash. A lookup stops at the first empty slot or larger hash, and there are no
// tombstones. Behind the homes is a tail for entries that do not fit before it. Its last slot is always
// empty, so every lookup ends.
type table struct {
	slots []entry
	homes uint64
	used  int
}

// entry is one counter. A pointer to an entry is valid until the next insert or remove.
type entry struct {
	// hash identifies the key and the counter. It is 0 in an empty slot. Its lowest bit is 1 if the state
	// has a block in the arena.
	hash uint64
	// until is the time from which the counter equals an unused one and may be forgotten, in microseconds.
	until int64
	// a and b are the algorithm's state. If the state has a block, a is the block's ref.
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

// find returns the entry of hash, or nil if there is none.
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

// slotOf returns the slot that has the entry of hash, or in which it would be inserted.
func (t *table) slotOf(hash uint64) uint64 {
	i := t.homeOf(hash)
	// The hash 0 of an empty slot becomes the largest number.
	for t.slots[i].hash-1 < hash-1 {
		i++
	}
	return i
}

// full reports whether the table has to grow before the next insert.
func (t *table) full() bool { return uint64(t.used) >= t.homes/8*7 }

// insert adds an entry of a new hash. It returns nil if the tail is full.
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

// remove removes the entry in slot i, and moves the entries behind it that are not in their homes.
func (t *table) remove(i int) {
	end := i + 1
	for t.slots[end].hash != 0 && t.homeOf(t.slots[end].hash) < uint64(end) {
		end++
	}
	copy(t.slots[i:], t.slots[i+1:end])
	t.slots[end-1] = entry{}
	t.used--
}

// grownHomes returns the number of homes after the table grows, which is by a quarter.
func (t *table) grownHomes() uint64 { return max(minHomes, (t.homes+t.homes/4+7)/8*8) }

// grow copies the table to a larger one.
func (t *table) grow(homes uint64) {
	for ; ; homes += homes / 4 {
		bigger := table{slots: make([]entry, homes+tailSlots(homes)), homes: homes, used: t.used}
		if bigger.copyFrom(t.slots) {
			*t = bigger
			return
		}
	}
}

// copyFrom copies the slots of another table. It reports whether the entries fit.
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

// tableBytes returns the bytes of a table with a number of homes.
func tableBytes(homes uint64) int64 {
	if homes == 0 {
		return 0
	}
	return allocatedBytes(entryBytes * int64(homes+tailSlots(homes)))
}

// allocatedBytes returns the bytes that the allocator uses for n bytes. It allocates whole pages if n is
// large, and rounds up a small n by little.
func allocatedBytes(n int64) int64 {
	const page = 8 << 10
	if n <= 32<<10 {
		return n
	}
	return (n + page - 1) / page * page
}
