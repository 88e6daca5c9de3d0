package layer

import (
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// result returns the result of a take of n by r, which d denies.
func (d *denial) result(n int64, r ratelimit.Rule, now time.Duration) ratelimit.Result {
	res := d.notViolatedResult(r, now)
	res.Violated = true
	res.RetryAfter = d.until - now
	if r.Algorithm() == "gcra" && n > d.n && !d.blocked {
		// The additional units take longer, too.
		res.RetryAfter += time.Duration((n-d.n)*d.rule.Per().Microseconds()/d.rule.Limit()) * time.Microsecond
	}
	res.ResetAfter = max(res.ResetAfter, res.RetryAfter)
	if d.blocked {
		res.Remaining, res.Blocked = 0, res.RetryAfter
	}
	return res
}

// notViolatedResult returns the result of a take by r in a group that another take's denial denies.
func (d *denial) notViolatedResult(r ratelimit.Rule, now time.Duration) ratelimit.Result {
	return ratelimit.Result{
		Source: ratelimit.FromDenyCache, Limit: r.Limit(),
		Remaining:  min(max(0, d.remaining-(d.rule.Burst()-r.Burst())), r.Burst()),
		ResetAfter: max(0, d.reset-now),
	}
}

// maxGroup is the size of the largest group that the cache answers.
const maxGroup = 16

// denyGroup answers a group that is known to be denied, and reports whether it is.
func (c *denyCache) denyGroup(ops []ratelimit.Op, out []ratelimit.Result, set *denialSet, tag uint32) bool {
	if len(ops) > maxGroup {
		return false
	}
	var known [maxGroup]*denial
	denied, now := false, c.now()
	for i := range ops {
		op := &ops[i]
		switch {
		case op.Kind == ratelimit.Add && op.Rule.Limit() == 0:
			continue // it denies nothing, and isn't done in a denied group
		case op.Kind != ratelimit.Take || op.Prepaid != 0:
			return false
		}
		d := set.find(tag, op.Key, op.Rule, now)
		if d == nil {
			return false
		}
		known[i] = d
		denied = denied || d.denies(op.N+chargedUnits(ops[:i], op.Rule), op.Rule)
	}
	if !denied {
		return false
	}
	for i := range ops {
		op, d := &ops[i], known[i]
		if d == nil {
			out[i] = ratelimit.Result{Source: ratelimit.FromDenyCache}
		} else if n := op.N + chargedUnits(ops[:i], op.Rule); d.denies(n, op.Rule) {
			out[i] = d.result(n, op.Rule, now)
		} else {
			out[i] = d.notViolatedResult(op.Rule, now)
		}
	}
	return true
}
