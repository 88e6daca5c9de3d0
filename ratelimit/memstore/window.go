package memstore

import (
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// windowAlgorithm counts the units in a window that begins with its first charge, or in a window of the calendar. Its
// state is
//
//	until  the end of the window
//	a      the units charged in the window
//	b      the generation of the counter
//
// If the clock goes back, the window lasts longer.
type windowAlgorithm struct{ entryOnly }

func (*windowAlgorithm) begin(s state, _ *rule, _, now, generation, _ int64) {
	s.until, s.a, s.b = now, 0, generation
}

func (*windowAlgorithm) count(s state, _ *rule, _, now int64) int64 {
	if now >= s.until {
		return 0
	}
	return s.a
}

func (p *windowAlgorithm) passes(s state, r *rule, n, now int64) (allowed, fit bool) {
	used := p.count(s, r, 0, now)
	return n <= r.Limit-used, n <= layout.MaxCount-used
}

func (p *windowAlgorithm) quota(s state, r *rule, n, now int64) (q quota) {
	used := p.count(s, r, 0, now)
	q.remaining = max(0, r.Limit-used)
	if n > q.remaining {
		q.retry = s.until - now
	}
	if used > 0 {
		q.reset = s.until - now
	}
	return q
}

func (*windowAlgorithm) charge(s state, r *rule, n, now, _, _ int64) ratelimit.Receipt {
	if now >= s.until {
		s.until, s.a = (*storage.Layout)(r).WindowEnd(now), 0
	}
	s.a += n
	return ratelimit.Receipt{N: n, At: s.until, Generation: s.b}
}

// refund does not end the window, even if no units are left in it.
func (p *windowAlgorithm) refund(s state, r *rule, c ratelimit.Receipt, now, _ int64) bool {
	if c.N <= 0 || c.N > p.count(s, r, 0, now) || c.At != s.until || c.Generation != s.b {
		return false
	}
	s.a -= c.N
	return true
}
