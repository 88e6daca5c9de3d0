package memstore

import (
	"github.com/lazyreq/lazyreq/ratelimit"

	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// windowAlgorithm counts in windows that begin with their first charge. Its state is
//
//	until  end of the window: from then on the counter equals a fresh one
//	a      units used in it
//	b      the generation of the counter
//
// A clock that goes back stays in the newest window, and nothing is lost.
type windowAlgorithm struct{}

func (windowAlgorithm) wordsNeeded(state, *rule, int64, int64, int64) int { return 0 }

func (windowAlgorithm) begin(s state, _ *rule, _, now, generation, _ int64) {
	s.until, s.a, s.b = now, 0, generation
}

func (windowAlgorithm) reshape(state, *rule, []uint32, int64, int64, int64) {}

func (windowAlgorithm) usedUnits(s state, now int64) int64 {
	if now >= s.until {
		return 0
	}
	return s.a
}

func (p windowAlgorithm) passes(s state, r *rule, n, now int64) (allowed, fit bool) {
	used := p.usedUnits(s, now)
	return n <= r.Limit-used, n <= storage.MaxCount-used
}

func (p windowAlgorithm) check(s state, r *rule, n, now int64, res *ratelimit.Result) {
	used := p.usedUnits(s, now)
	res.Limit, res.Remaining = r.Limit, max(0, r.Limit-used)
	res.Allowed = n <= res.Remaining
	if !res.Allowed {
		res.RetryAfter = layout.Duration(s.until - now)
	}
	if used > 0 {
		res.ResetAfter = layout.Duration(s.until - now)
	}
}

func (windowAlgorithm) charge(s state, r *rule, n, now, _ int64) ratelimit.Receipt {
	if now >= s.until {
		s.until, s.a = now+r.Per, 0
	}
	s.a += n
	return ratelimit.Receipt{N: n, At: s.until, Generation: s.b}
}

func (p windowAlgorithm) count(s state, _ *rule, _, now int64) int64 { return p.usedUnits(s, now) }

// refund doesn't end the window, even if nothing is left in it.
func (p windowAlgorithm) refund(s state, _ *rule, c ratelimit.Receipt, now int64) bool {
	if c.N <= 0 || c.N > p.usedUnits(s, now) || c.At != s.until || c.Generation != s.b {
		return false
	}
	s.a -= c.N
	return true
}
