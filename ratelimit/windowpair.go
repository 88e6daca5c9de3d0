package ratelimit

// windowPair counts in windows that begin with their first charge. Its state is
//
//	until  end of the window: from then on the counter equals a fresh one
//	a      units used in it
//	b      which life of the counter this is
//
// A clock that goes back stays in the newest window, and nothing is lost.
type windowPair struct{}

func (windowPair) need(state, *Rule, int64, int64, int64) int { return 0 }

func (windowPair) begin(s state, _ *Rule, _, now, life, _ int64) { s.until, s.a, s.b = now, 0, life }

func (windowPair) reshape(state, *Rule, []uint32, int64, int64, int64) {}

func (windowPair) used(s state, now int64) int64 {
	if now >= s.until {
		return 0
	}
	return s.a
}

func (p windowPair) fits(s state, _ *Rule, n, now int64) bool {
	return n <= maxCount-p.used(s, now)
}

func (p windowPair) passes(s state, r *Rule, n, now int64) bool {
	return n <= r.limit-p.used(s, now)
}

func (p windowPair) check(s state, r *Rule, n, now int64, res *Result) {
	used := p.used(s, now)
	res.Limit, res.Remaining = r.limit, max(0, r.limit-used)
	res.Allowed = n <= res.Remaining
	if !res.Allowed {
		res.RetryAfter = micros(s.until - now)
	}
	if used > 0 {
		res.ResetAfter = micros(s.until - now)
	}
}

func (windowPair) charge(s state, r *Rule, n, now, _ int64) Receipt {
	if now >= s.until {
		s.until, s.a = now+r.per, 0
	}
	s.a += n
	return Receipt{N: n, At: s.until, Life: s.b}
}

func (p windowPair) count(s state, _ *Rule, _, now int64) int64 { return p.used(s, now) }

// refund doesn't end the window, even if nothing is left in it.
func (p windowPair) refund(s state, _ *Rule, c Receipt, now int64) bool {
	if c.N <= 0 || c.N > p.used(s, now) || c.At != s.until || c.Life != s.b {
		return false
	}
	s.a -= c.N
	return true
}
