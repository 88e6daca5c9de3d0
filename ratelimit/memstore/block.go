package memstore

// block counts denied takes, and remembers the block that they lead to. Its state is
// an entry of its own beside the counter's:
//
//	until  end of the block, or of the Per in which denials add up
//	a      denials so far
//
// It is a block as soon as a is After, and further denials don't prolong it. The rules that share it agree in that.
type block struct{}

// timeLeft returns how long the block lasts; there is none if that isn't more than 0.
func (block) timeLeft(e *entry, r *rule, now int64) int64 {
	if e == nil || e.a < r.BlockAfter {
		return 0
	}
	return e.until - now
}

// countDenial counts a denial and returns what left then does.
func (p block) countDenial(e *entry, r *rule, now int64) int64 {
	if now >= e.until {
		e.a, e.until = 0, now+r.Per
	}
	if e.a++; e.a == r.BlockAfter {
		e.until = now + r.BlockFor
	}
	return p.timeLeft(e, r, now)
}
