package memstore

import (
	"fmt"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

const (
	// evict compares all entries of a table with up to exactSlots slots, such as that of a store of up to 511 counters.
	// In a larger table, it compares only sample entries.
	exactSlots = 1024
	sample     = 32
	sweepSlots = 4 // the number of slots that sweep checks for each new entry
	// grace is the time in microseconds for which sweep keeps a counter after its quota is full again. If the clock goes
	// back by less, no charge is lost.
	grace = 10_000_000
)

// makeRoom makes the entries and blocks that all charges of the group need, so that charging cannot fail. If there is no
// room, it makes none of them, and either reports that the group is denied or returns ErrNoRoom.
func (g *group) makeRoom() (denied bool, err error) {
	for i := range g.ops {
		op := &g.ops[i]
		r := ruleFor(op)
		hash := r.hash(g.key)
		known := g.table.find(hash) != nil || g.insertFresh(hash, r) != nil
		if !known || !g.growEntry(hash, r, op.N+storage.Pending(g.ops[:i], r.ID), layout.Micros(op.Prepaid)) {
			g.undoMakeRoom(i)
			return g.denyOrFail(i)
		}
	}
	return false, nil
}

// insertFresh inserts a new counter, without its block. It returns nil if there is no room.
func (g *group) insertFresh(hash uint64, r *rule) *entry {
	e := g.insert(hash)
	switch {
	case e == nil:
	case r.hasBlock():
		e.a = noBlock
	default:
		g.generations++
		r.algorithm().begin(state{entry: e}, r, 0, g.now, g.generations, 0)
	}
	return e
}

// growEntry gives a counter the words that it must have before n units are charged. It reports whether there was room.
func (g *group) growEntry(hash uint64, r *rule, n, prepaid int64) bool {
	if !r.hasBlock() {
		return true
	}
	s := g.state(g.table.find(hash))
	words := r.algorithm().wordsNeeded(s, r, n, g.now, prepaid)
	if words == len(s.words) {
		return true
	}
	class := g.arena.classFor(words)
	if !g.reserve(class) {
		return false
	}
	s = g.state(g.table.find(hash)) // reserve may have moved the entry
	old, ref := s.a, g.arena.take(class, hash)
	to := g.arena.words(ref)
	if old == noBlock {
		g.generations++
		r.algorithm().begin(state{s.entry, to}, r, n, g.now, g.generations, prepaid)
	} else {
		r.algorithm().reshape(s, r, to, n, g.now, prepaid)
	}
	s.a = ref
	g.freeBlock(old)
	return true
}

// undoMakeRoom removes the counters that makeRoom has made for the ops up to last. It may also remove other counters of
// these ops whose quota is full, which changes no result.
func (g *group) undoMakeRoom(last int) {
	for i := range last + 1 {
		hash := ruleFor(&g.ops[i]).hash(g.key)
		if e := g.table.find(hash); e != nil && e.until <= g.now {
			g.forget(hash)
		}
	}
}

// denyOrFail returns the result of makeRoom if there is no room for op i. With DenyNew, a take is denied if there will be
// room later. In all other cases, the group fails.
func (g *group) denyOrFail(i int) (denied bool, err error) {
	if g.ops[i].Kind == ratelimit.Take && g.wait > 0 {
		g.out[i].Violated = true
		return true, nil
	}
	return false, fmt.Errorf("%w: %d bytes and %d counters of at most %d and %d", ratelimit.ErrNoRoom, g.bytes(), g.table.used, g.maxBytes, g.maxUsed)
}

// insert adds an entry for a new counter. It returns nil if there is no room.
func (g *group) insert(hash uint64) *entry {
	g.sweep()
	for g.table.used >= g.maxUsed || g.table.full() && !g.grow() {
		if !g.evict(0, len(g.table.slots)) {
			return nil
		}
	}
	e := g.table.insert(hash)
	for e == nil {
		// The entry belongs into the tail, which is full.
		if !g.grow() && !g.evict(int(g.table.homes), len(g.table.slots)) {
			return nil
		}
		e = g.table.insert(hash)
	}
	e.until = g.now
	return e
}

// grow makes the table larger, and reports whether the bound allowed it.
func (g *group) grow() bool {
	homes := g.table.grownHomes()
	if g.bytes()+tableBytes(homes)-tableBytes(g.table.homes) > g.maxBytes {
		return false
	}
	g.table.grow(homes)
	return true
}

// reserve makes sure that a class has a free block. It reports whether there was room.
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

// evict removes the entry with the earliest until in a range of slots, and reports whether it has removed one. It never
// removes an entry of the group. With DenyNew, it only removes a counter whose quota is full again.
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

// sweep checks the next few slots and removes counters whose quota has been full for some time, so that they do not
// accumulate.
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

// owns reports whether the entry with this hash belongs to an op of the group.
func (g *group) owns(hash uint64) bool {
	for i := range g.ops {
		r := ruleFor(&g.ops[i])
		if hash == r.hash(g.key) || r.BlockAfter > 0 && hash == r.blockHash(g.key) {
			return true
		}
	}
	return false
}
