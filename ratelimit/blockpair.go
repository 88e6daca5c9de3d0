package ratelimit

// blockPair counts denied takes, and remembers the block that they lead to. Its state is
// an entry of its own beside the counter's:
//
//	until  end of the block, or of the Per in which denials add up
//	a      denials so far
//
// It is a block as soon as a is After, and further denials don't prolong it. The rules that share it agree in that.
type blockPair struct{}

// left returns how long the block lasts; there is none if that isn't more than 0.
func (blockPair) left(e *entry, r *Rule, now int64) int64 {
	if e == nil || e.a < int64(r.block.After) {
		return 0
	}
	return e.until - now
}

// note counts a denial and returns what left does then.
func (p blockPair) note(e *entry, r *Rule, now int64) int64 {
	if now >= e.until {
		e.a, e.until = 0, now+r.per
	}
	if e.a++; e.a == int64(r.block.After) {
		e.until = now + r.block.For.Microseconds()
	}
	return p.left(e, r, now)
}
