package ratelimit

import "math/bits"

// gcraPair keeps a level in 1/limit µs, which makes whole numbers of everything: a unit
// raises it by per, it falls by limit in every microsecond, and burst × per is full. The
// level is also the number of units used, in 1/per, so it keeps its meaning if the limit
// changes. Its state is
//
//	a  at     when the level was last raised; it never goes back
//	b  level  what it was then, at most 2^53
//
// Rounding the time of a unit to microseconds instead would lose 17 % of a rate of 600,000
// in a second.
type gcraPair struct{}

func (gcraPair) need(state, *Rule, int64, int64, int64) int { return 0 }

func (gcraPair) begin(s state, _ *Rule, _, now, _, _ int64) { s.a, s.b = now, 0 }

func (gcraPair) reshape(state, *Rule, []uint32, int64, int64, int64) {}

// level returns what is left of the level.
func (gcraPair) level(s state, r *Rule, now int64) int64 {
	if now <= s.a {
		return s.b
	}
	high, fallen := bits.Mul64(uint64(now-s.a), uint64(r.limit))
	if high != 0 || fallen >= uint64(s.b) {
		return 0
	}
	return s.b - int64(fallen)
}

// lifted returns what is left of the level, or what falls of it in ahead, if that is more:
// units that are charged ahead must still be in the level when they are spent.
func (p gcraPair) lifted(s state, r *Rule, now, ahead int64) int64 {
	return max(p.level(s, r, now), ahead*r.limit)
}

// fits multiplies an n of at most maxCount/per.
func (p gcraPair) fits(s state, r *Rule, n, now int64) bool {
	return n*r.per <= maxCount-p.level(s, r, now)
}

// passes multiplies an n of at most burst. For n units ahead there is room in an empty
// bucket, which was validated.
func (p gcraPair) passes(s state, r *Rule, n, now int64) bool {
	return n*r.per <= r.burst*r.per-p.level(s, r, now)
}

func (p gcraPair) check(s state, r *Rule, n, now int64, res *Result) {
	level := p.level(s, r, now)
	free := r.burst*r.per - level // below 0 after an Add, or under a lower limit
	res.Limit = r.limit
	if free > 0 {
		res.Remaining = quotient(free, r.per)
	}
	res.Allowed = n <= res.Remaining
	behind := max(0, s.a-now) // the level doesn't fall before at
	if !res.Allowed {
		res.RetryAfter = micros(behind + quotient(n*r.per-free+r.limit-1, r.limit))
	}
	if level > 0 {
		res.ResetAfter = micros(behind + quotient(level+r.limit-1, r.limit))
	}
}

func (p gcraPair) charge(s state, r *Rule, n, now, ahead int64) Receipt {
	if s.b == 0 {
		s.a = now // as a fresh one: at may lie ahead of a clock that went back
	}
	s.b = p.lifted(s, r, now, ahead) + n*r.per
	s.a = max(s.a, now)
	s.until = s.a + quotient(s.b+r.limit-1, r.limit)
	return Receipt{N: n, At: s.a, Life: s.b}
}

func (gcraPair) count(state, *Rule, int64, int64) int64 { return 0 }

// refund compares and sets: if the state is as the charge left it, nothing came after,
// and taking the units off leaves what a charge of less would have. When the level has
// fallen to nothing there is nothing to give back, and the state may be forgotten.
func (p gcraPair) refund(s state, r *Rule, c Receipt, now int64) bool {
	if c.N <= 0 || c.N > s.b/r.per || c.At != s.a || c.Life != s.b || p.level(s, r, now) == 0 {
		return false
	}
	s.b -= c.N * r.per
	s.until = s.a + quotient(s.b+r.limit-1, r.limit)
	return true
}

// quotient divides what isn't negative. Small numbers divide in half of the time.
func quotient(a, b int64) int64 {
	if uint64(a|b)>>32 == 0 {
		return int64(uint32(a) / uint32(b))
	}
	return int64(uint64(a) / uint64(b))
}
