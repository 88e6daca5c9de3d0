package ratelimit

import "github.com/lazyreq/lazyreq/ratelimit/internal/gcra"

// gcraPair keeps a level, as package gcra defines it. Its state is
//
//	a  at     when the level was last raised; it never goes back
//	b  level  what it was then
type gcraPair struct{}

func (gcraPair) need(state, *Rule, int64, int64, int64) int { return 0 }

func (gcraPair) begin(s state, _ *Rule, _, now, _, _ int64) { s.a, s.b = now, 0 }

func (gcraPair) reshape(state, *Rule, []uint32, int64, int64, int64) {}

// level returns what is left of the level.
func (gcraPair) level(s state, r *Rule, now int64) int64 {
	return gcra.Rule{Limit: r.limit, Burst: r.burst, Per: r.per}.Level(s.a, s.b, now)
}

// lifted returns what is left of the level, or what falls of it in ahead, if that is more:
// units that are charged ahead must still be in the level when they are spent.
func (p gcraPair) lifted(s state, r *Rule, now, ahead int64) int64 {
	return max(p.level(s, r, now), ahead*r.limit)
}

func (p gcraPair) fits(s state, r *Rule, n, now int64) bool {
	return n <= r.most()-gcra.Quotient(p.level(s, r, now), r.per)
}

// passes multiplies an n of at most burst. For n units ahead there is room in an empty
// bucket, which was validated.
func (p gcraPair) passes(s state, r *Rule, n, now int64) bool {
	return n*r.per <= r.burst*r.per-p.level(s, r, now)
}

func (p gcraPair) check(s state, r *Rule, n, now int64, res *Result) {
	g := gcra.Rule{Limit: r.limit, Burst: r.burst, Per: r.per}
	remaining, retry, reset := g.Check(g.Level(s.a, s.b, now), max(0, s.a-now), n)
	res.Limit, res.Remaining, res.Allowed = r.limit, remaining, n <= remaining
	res.RetryAfter, res.ResetAfter = micros(retry), micros(reset)
}

func (p gcraPair) charge(s state, r *Rule, n, now, ahead int64) Receipt {
	if s.b == 0 {
		s.a = now // as a fresh one: at may lie ahead of a clock that went back
	}
	s.b = p.lifted(s, r, now, ahead) + n*r.per
	s.a = max(s.a, now)
	s.until = s.a + gcra.Quotient(s.b+r.limit-1, r.limit)
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
	s.until = s.a + gcra.Quotient(s.b+r.limit-1, r.limit)
	return true
}
