package memstore

import (
	"fmt"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

const (
	// exactSlots is how large a table can be for the search of what is nearest to full
	// quota to go through all of it. That is so in every store of up to 511 subjects,
	// which is one shard.
	exactSlots = 1024
	sample     = 32 // entries that the search in a larger table looks at
	sweepSlots = 4  // looked at with each entry that comes, so that old ones never pile up
	// grace is how long what equals a fresh counter is kept, in microseconds, as long
	// as there is room: a clock may go back by as much, and nothing is lost.
	grace = 10_000_000
)

// makeRoom makes entries and blocks for all that the group, of takes or one add, charges, so that
// charging cannot fail. It reports whether the store is full and denies, or returns ErrNoRoom; then no
// counter has begun.
func (g *group) makeRoom() (denied bool, err error) {
	for i := range g.ops {
		op := &g.ops[i]
		r := ruleFor(op)
		hash := r.hash(g.key)
		known := g.table.find(hash) != nil || g.insertFresh(hash, r) != nil
		if !known || !g.growEntry(hash, r, op.N+storage.Pending(g.ops[:i], r.ID), storage.Micros(op.Prepaid)) {
			g.undoMakeRoom(i)
			return g.denyOrFail(i)
		}
	}
	return false, nil
}

// insertFresh inserts an entry that equals a fresh counter; without its block, if it needs one.
// It returns nil if there is no room.
func (g *group) insertFresh(hash uint64, r *rule) *entry {
	e := g.insert(hash)
	switch {
	case e == nil:
	case r.hasBlock():
		e.a = noBlock
	default:
		g.generations++
		r.begin(state{entry: e}, 0, g.now, g.generations, 0)
	}
	return e
}

// growEntry gives the entry of hash the words that it needs before n units are charged, and
// reports whether there was room.
func (g *group) growEntry(hash uint64, r *rule, n, ahead int64) bool {
	if !r.hasBlock() {
		return true
	}
	s := g.state(g.table.find(hash))
	words := r.wordsNeeded(s, n, g.now, ahead)
	if words == len(s.words) {
		return true
	}
	class := g.arena.classFor(words)
	if !g.reserve(class) {
		return false
	}
	s = g.state(g.table.find(hash)) // it may have moved
	old, ref := s.a, g.arena.take(class, hash)
	to := g.arena.words(ref)
	if old == noBlock {
		g.generations++
		r.begin(state{s.entry, to}, n, g.now, g.generations, ahead)
	} else {
		r.reshape(s, to, n, g.now, ahead)
	}
	s.a = ref
	g.freeBlock(old)
	return true
}

// undoMakeRoom removes what makeRoom began for ops up to the given one. Of the others it may remove
// what equals a fresh counter, which makes no difference.
func (g *group) undoMakeRoom(last int) {
	for i := range last + 1 {
		hash := ruleFor(&g.ops[i]).hash(g.key)
		if e := g.table.find(hash); e != nil && e.until <= g.now {
			g.forget(hash)
		}
	}
}

// denyOrFail reports what happens to the group when the store has no room for op i: a DenyNew store
// denies a take and knows when room will be free; an add fails with ErrNoRoom.
func (g *group) denyOrFail(i int) (denied bool, err error) {
	if g.ops[i].Kind == ratelimit.Take && g.wait > 0 {
		g.out[i].Violated = true
		return true, nil
	}
	return false, fmt.Errorf("%w: %d bytes and %d counters of at most %d and %d", ratelimit.ErrNoRoom, g.bytes(), g.table.used, g.maxBytes, g.maxUsed)
}

// insert adds an entry, that equals a fresh counter, and returns nil if there is no room.
func (g *group) insert(hash uint64) *entry {
	g.sweep()
	for g.table.used >= g.maxUsed {
		if !g.evict(0, len(g.table.slots)) {
			return nil
		}
	}
	for g.table.full() && !g.grow() {
		if !g.evict(0, len(g.table.slots)) {
			return nil
		}
	}
	e := g.table.insert(hash)
	for e == nil {
		// The tail is full, and a place in it is needed.
		if !g.grow() && !g.evict(int(g.table.homes), len(g.table.slots)) {
			return nil
		}
		e = g.table.insert(hash)
	}
	e.until = g.now
	return e
}

// grow makes the table larger, if the bound allows it.
func (g *group) grow() bool {
	homes := g.table.grownHomes()
	if g.bytes()+tableBytes(homes)-tableBytes(g.table.homes) > g.maxBytes {
		return false
	}
	g.table.grow(homes)
	return true
}

// reserve makes sure that a class has a free block, and reports whether there was room.
func (g *group) reserve(class int) bool {
	for {
		c := &g.arena.classes[class]
		if c.used < c.blocks() {
			return true
		}
		for _, more := range [...]int{c.used / 8, c.used / 64, 1} {
			if more > 0 && g.bytes()+c.bytesFor(c.used+more)-c.bytesFor(c.used) <= g.maxBytes {
				g.arena.resize(class, c.used+more)
				return true
			}
		}
		if !g.arena.shrink() && !g.evict(0, len(g.table.slots)) {
			return false
		}
	}
}

// evict removes the entry among some slots that equals a fresh counter soonest, or does
// already, and reports whether it could. It never removes an entry of the group. A store that denies
// when it is full only removes what equals a fresh one.
func (g *group) evict(from, to int) bool {
	best := -1
	seen, slots := 0, g.table.slots
	at, step := from, to-from
	if step > exactSlots {
		at = from + g.evictPos%step
	}
	for range step {
		if e := &slots[at]; e.hash != 0 {
			if (best < 0 || e.until < slots[best].until) && !g.owns(e.hash) {
				best = at
			}
			seen++
		}
		if at++; at == to {
			at = from
		}
		if step > exactSlots && seen == sample {
			break
		}
	}
	g.evictPos = at
	if best < 0 {
		return false
	}
	if wait := slots[best].until - g.now; g.denies && wait > 0 {
		g.wait = wait
		return false
	}
	g.remove(best)
	return true
}

// sweep looks at a few entries, in turn, and removes those that expired long ago.
func (g *group) sweep() {
	for range min(sweepSlots, len(g.table.slots)) {
		if g.sweepPos >= len(g.table.slots) {
			g.sweepPos = 0
		}
		e := &g.table.slots[g.sweepPos]
		if e.hash != 0 && g.now-e.until >= grace && !g.owns(e.hash) {
			g.remove(g.sweepPos)
		} else {
			g.sweepPos++
		}
	}
}

// owns reports whether an entry is one of the group's.
func (g *group) owns(hash uint64) bool {
	for i := range g.ops {
		r := ruleFor(&g.ops[i])
		if hash == r.hash(g.key) || r.BlockAfter > 0 && hash == r.blockHash(g.key) {
			return true
		}
	}
	return false
}
