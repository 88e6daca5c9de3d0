package memstore

import (
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/gcra"
)

// gcraAlgorithm keeps a level, as package gcra defines it. Its state is
//
//	a  the time at which the level was last raised; it never goes back
//	b  the level after that
type gcraAlgorithm struct{ entryOnly }

func (*gcraAlgorithm) begin(s state, _ *rule, _, now, _, _ int64) { s.a, s.b = now, 0 }

func (r *rule) gcra() gcra.Rule { return gcra.Rule{Limit: r.Limit, Burst: r.Burst, Per: r.Per} }

// passes compares n with the burst before it multiplies, so that the product does not overflow. The level has room for
// every allowed take.
func (*gcraAlgorithm) passes(s state, r *rule, n, now int64) (allowed, fit bool) {
	level := r.gcra().Level(s.a, s.b, now)
	allowed = n <= r.Burst && n*r.Per <= r.Burst*r.Per-level
	return allowed, allowed || n <= gcra.MaxUnits(r.Per)-gcra.Quotient(level, r.Per)
}

func (*gcraAlgorithm) quota(s state, r *rule, n, now int64) (q quota) {
	g := r.gcra()
	q.remaining, q.retry, q.reset = g.Check(g.Level(s.a, s.b, now), max(0, s.a-now), n)
	return q
}

// charge first raises the level to the units that leak until prepaid has passed, because the prepaid units must still be
// in the level when they are spent.
func (*gcraAlgorithm) charge(s state, r *rule, n, now, _, prepaid int64) ratelimit.Receipt {
	if s.b == 0 {
		s.a = now // the clock may have gone back since the counter began
	}
	s.b = max(r.gcra().Level(s.a, s.b, now), prepaid*r.Limit) + n*r.Per
	s.a = max(s.a, now)
	s.until = s.a + gcra.Quotient(s.b+r.Limit-1, r.Limit)
	return ratelimit.Receipt{N: n, At: s.a, Generation: s.b}
}

func (*gcraAlgorithm) count(state, *rule, int64, int64) int64 { return 0 }

// refund works only if the counter is in the state that the charge left, which means that nothing was charged since.
// It also reports false if the level has fallen to 0, because then the store may have forgotten the counter.
func (*gcraAlgorithm) refund(s state, r *rule, c ratelimit.Receipt, now, _ int64) bool {
	if c.N <= 0 || c.N > s.b/r.Per || c.At != s.a || c.Generation != s.b || r.gcra().Level(s.a, s.b, now) == 0 {
		return false
	}
	s.b -= c.N * r.Per
	s.until = s.a + gcra.Quotient(s.b+r.Limit-1, r.Limit)
	return true
}
