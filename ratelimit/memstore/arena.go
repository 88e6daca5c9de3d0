package memstore

// arena holds the states that are too large for an entry. Blocks of one size lie side by
// side without gaps, in a slice without pointers: one that is freed is replaced by the
// last one, and what is no longer needed can be given back.
type arena struct {
	classes []class
	bytes   int64
}

// class is the blocks of one size.
type class struct {
	size  int // words of a block
	used  int // blocks
	words []uint32
}

// blockHead is the number of words before a block's state: the hash of the entry that
// owns it, which has to learn where a block was moved.
const blockHead = 2

// A block's ref is the number of its class and its own.
func newRef(c, i int) int64               { return int64(c)<<32 | int64(i) }
func splitRef(ref int64) (class, blk int) { return int(ref >> 32), int(ref & (1<<32 - 1)) }

// words returns the state in a block; good until the next take or free.
func (a *arena) words(ref int64) []uint32 {
	c, i := splitRef(ref)
	return a.classes[c].block(i)[blockHead:]
}

func (c *class) block(i int) []uint32 {
	return c.words[i*c.size : (i+1)*c.size : (i+1)*c.size]
}

func (c *class) blocks() int { return len(c.words) / c.size }

// classFor returns the number of the class for states of n words.
func (a *arena) classFor(n int) int {
	size := n + blockHead
	for i := range a.classes {
		if a.classes[i].size == size {
			return i
		}
	}
	a.classes = append(a.classes, class{size: size})
	return len(a.classes) - 1
}

// take returns a block of class c, which has one, for the entry of a hash.
func (a *arena) take(c int, owner uint64) int64 {
	cl := &a.classes[c]
	i := cl.used
	cl.used++
	b := cl.block(i)
	clear(b)
	put64(b, owner)
	return newRef(c, i)
}

// free gives a block back. If another was moved into its place, that one's owner is
// returned, otherwise 0.
func (a *arena) free(ref int64) (owner uint64) {
	c, i := splitRef(ref)
	cl := &a.classes[c]
	cl.used--
	if i != cl.used {
		copy(cl.block(i), cl.block(cl.used))
		owner = get64(cl.block(i))
	}
	if cl.used == 0 || cl.used < cl.blocks()/2 {
		a.resize(c, cl.used+cl.used/8)
	}
	return owner
}

// resize gives class c room for n blocks, at least those in use. It takes the time of
// copying them.
func (a *arena) resize(c, n int) {
	cl := &a.classes[c]
	a.bytes += cl.bytesFor(n) - cl.bytesFor(cl.blocks())
	var words []uint32
	if n > 0 {
		words = make([]uint32, n*cl.size)
		copy(words, cl.words[:cl.used*cl.size])
	}
	cl.words = words
}

// bytesFor is what n blocks take.
func (c *class) bytesFor(n int) int64 { return allocatedBytes(4 * int64(n) * int64(c.size)) }

// shrink gives back the free blocks of one class, if they are worth its copying, and
// reports whether there was one.
func (a *arena) shrink() bool {
	for i := range a.classes {
		c := &a.classes[i]
		if free := c.blocks() - c.used; free > c.used/64 && c.bytesFor(c.blocks()) > c.bytesFor(c.used) {
			a.resize(i, c.used)
			return true
		}
	}
	return false
}

func get64(w []uint32) uint64    { return uint64(w[0]) | uint64(w[1])<<32 }
func put64(w []uint32, v uint64) { w[0], w[1] = uint32(v), uint32(v>>32) }
