package memstore

// arena holds the states that are too large for an entry. Blocks of the same size are in the same slice, which has no
// pointers and no gaps. When a block is freed, the last block replaces it, so that the slice can shrink.
type arena struct {
	classes []class
	bytes   int64
}

// class holds the blocks of one size.
type class struct {
	size  int // words in a block
	used  int // number of blocks in use
	words []uint32
}

// blockHead is the number of words before a block's state. They hold the hash of the entry that owns the block, because
// the entry must be changed when the block moves.
const blockHead = 2

// newRef returns the reference of block i of class c.
func newRef(c, i int) int64 { return int64(c)<<32 | int64(i) }

// splitRef returns the numbers of the class and the block that a reference contains.
func splitRef(ref int64) (c, i int) { return int(ref >> 32), int(ref & (1<<32 - 1)) }

// words returns the words of a block's state. They are valid until the next take or free.
func (a *arena) words(ref int64) []uint32 {
	c, i := splitRef(ref)
	return a.classes[c].block(i)[blockHead:]
}

func (c *class) block(i int) []uint32 {
	return c.words[i*c.size : (i+1)*c.size : (i+1)*c.size]
}

// blocks returns the number of blocks, including free blocks.
func (c *class) blocks() int { return len(c.words) / c.size }

// classFor returns the number of the class for states of n words. It makes the class if necessary.
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

// take returns the reference of a free block of class c. owner is the hash of the entry that will use it.
func (a *arena) take(c int, owner uint64) int64 {
	cl := &a.classes[c]
	i := cl.used
	cl.used++
	b := cl.block(i)
	clear(b)
	put64(b, owner)
	return newRef(c, i)
}

// free frees a block. If the last block of the class takes its place, free returns the hash of the last block's owner.
// Otherwise, it returns 0.
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

// resize changes the number of blocks in class c.
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

// bytesFor returns the size of n blocks in bytes.
func (c *class) bytesFor(n int) int64 { return allocatedBytes(4 * int64(n) * int64(c.size)) }

// shrink removes the free blocks of the first class that has enough of them to be worth a copy. It reports whether there
// was such a class.
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
