package memstore

import "math/bits"

// table finds the entries of a shard by hash. It has no pointers, so the garbage collector does not scan it.
//
// The table uses linear probing and keeps entries in the order of their hashes: larger hashes have later homes. A lookup
// stops at the first empty slot or larger hash, and there are no tombstones. The homes are followed by a tail for entries
// that have been pushed out of the last homes. The tail's last slot is always empty, and so every lookup ends.
type table struct {
	slots []entry
	homes uint64
	used  int
}

// entry is a counter. A pointer to an entry is valid until the next insert or remove.
type entry struct {
	// hash identifies the key and the rule's counter. It is 0 in an empty slot. Its lowest bit is 1 if the counter has a
	// block in the arena.
	hash uint64
	// until is the time, in microseconds, from which the quota is full again and the counter may be forgotten.
	until int64
	// a and b are the algorithm's state. If the counter has a block, a is the block's reference.
	a, b int64
}

const (
	entryBytes = 32
	minHomes   = 8
)

// tailSlots returns the number of slots in the tail.
func tailSlots(homes uint64) uint64 { return 8 + homes/64 }

// homeOf returns the slot in which an entry is placed if the slot is free.
func (t *table) homeOf(hash uint64) uint64 {
	high, _ := bits.Mul64(hash, t.homes)
	return high
}

// find returns the entry that has a hash, or nil if there is none.
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

// slotOf returns the slot that has the entry of a hash, or in which the entry would be inserted.
func (t *table) slotOf(hash uint64) uint64 {
	i := t.homeOf(hash)
	// The subtraction turns the hash 0 of an empty slot into the largest number.
	for t.slots[i].hash-1 < hash-1 {
		i++
	}
	return i
}

// full reports whether the table has to grow before the next insert.
func (t *table) full() bool { return uint64(t.used) >= t.homes/8*7 }

// insert adds an entry with a new hash. It returns nil if the tail is full.
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

// remove removes the entry in slot i. It moves the following entries one slot back, up to the first entry in its home.
func (t *table) remove(i int) {
	end := i + 1
	for t.slots[end].hash != 0 && t.homeOf(t.slots[end].hash) < uint64(end) {
		end++
	}
	copy(t.slots[i:], t.slots[i+1:end])
	t.slots[end-1] = entry{}
	t.used--
}

// grownHomes returns a number of homes that is larger by a quarter.
func (t *table) grownHomes() uint64 { return max(minHomes, (t.homes+t.homes/4+7)/8*8) }

// grow moves the entries to a table with at least this number of homes.
func (t *table) grow(homes uint64) {
	for ; ; homes += homes / 4 {
		bigger := table{slots: make([]entry, homes+tailSlots(homes)), homes: homes, used: t.used}
		if bigger.copyFrom(t.slots) {
			*t = bigger
			return
		}
	}
}

// copyFrom copies the entries of another table. It reports whether they fit.
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

// tableBytes returns the size of a table in bytes.
func tableBytes(homes uint64) int64 {
	if homes == 0 {
		return 0
	}
	return allocatedBytes(entryBytes * int64(homes+tailSlots(homes)))
}

// allocatedBytes returns the number of bytes that Go allocates for an object of n bytes. Large objects take whole pages.
// For small objects, the difference is negligible.
func allocatedBytes(n int64) int64 {
	const page = 8 << 10
	if n <= 32<<10 {
		return n
	}
	return (n + page - 1) / page * page
}
