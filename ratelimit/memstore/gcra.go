package memstore

import (
	"github.com/lazyreq/lazyreq/ratelimit/internal/gcra"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// gcraAlgorithm keeps a level, as package gcra defines it. Its state is
//
//	a  at     when the level was last raised; it never goes back
//	b  level  what it was then
type gcraAlgorithm struct{}

func (gcraAlgorithm) wordsNeeded(state, *rule, int64, int64, int64) int { return 0 }

func (gcraAlgorithm) begin(s state, _ *rule, _, now, _, _ int64) { s.a, s.b = now, 0 }

func (gcraAlgorithm) reshape(state, *rule, []uint32, int64, int64, int64) {}

// level returns what is left of the level.
func (gcraAlgorithm) level(s state, r *rule, now int64) int64 {
	return gcra.Rule{Limit: r.Limit, Burst: r.Burst, Per: r.Per}.Level(s.a, s.b, now)
}

// levelWithPrepaid returns what is left of the level, or what falls of it in ahead, if that is more:
// units that are charged ahead must still be in the level when they are spent.
func (p gcraAlgorithm) levelWithPrepaid(s state, r *rule, now, ahead int64) int64 {
	return max(p.level(s, r, now), ahead*r.Limit)
}

// passes multiplies an n of at most burst, and what is allowed fits. For n units ahead there is
// room in an empty bucket, which was validated.
func (p gcraAlgorithm) passes(s state, r *rule, n, now int64) (allowed, fit bool) {
	level := p.level(s, r, now)
	allowed = n <= r.Burst && n*r.Per <= r.Burst*r.Per-level
	return allowed, allowed || n <= gcra.MaxUnits(r.Per)-gcra.Quotient(level, r.Per)
}

func (p gcraAlgorithm) check(s state, r *rule, n, now int64, res *ratelimit.Result) {
	g := gcra.Rule{Limit: r.Limit, Burst: r.Burst, Per: r.Per}
	remaining, retry, reset := g.Check(g.Level(s.a, s.b, now), max(0, s.a-now), n)
	res.Limit, res.Remaining, res.Allowed = r.Limit, remaining, n <= remaining
	res.RetryAfter, res.ResetAfter = layout.Duration(retry), layout.Duration(reset)
}

func (p gcraAlgorithm) charge(s state, r *rule, n, now, ahead int64) ratelimit.Receipt {
	if s.b == 0 {
		s.a = now // as a fresh one: at may lie ahead of a clock that went back
	}
	s.b = p.levelWithPrepaid(s, r, now, ahead) + n*r.Per
	s.a = max(s.a, now)
	s.until = s.a + gcra.Quotient(s.b+r.Limit-1, r.Limit)
	return ratelimit.Receipt{N: n, At: s.a, Generation: s.b}
}

func (gcraAlgorithm) count(state, *rule, int64, int64) int64 { return 0 }

// refund compares and sets: if the state is as the charge left it, nothing came after,
// and taking the units off leaves what a charge of less would have. When the level has
// fallen to nothing there is nothing to give back, and the state may be forgotten.
func (p gcraAlgorithm) refund(s state, r *rule, c ratelimit.Receipt, now int64) bool {
	if c.N <= 0 || c.N > s.b/r.Per || c.At != s.a || c.Generation != s.b || p.level(s, r, now) == 0 {
		return false
	}
	s.b -= c.N * r.Per
	s.until = s.a + gcra.Quotient(s.b+r.Limit-1, r.Limit)
	return true
}
