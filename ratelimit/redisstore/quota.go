package redisstore

import (
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/gcra"
)

// counterReply is a script's report on a counter after an op.
type counterReply struct {
	ints    []int64 // the algorithm's report, which its Lua file describes
	now     int64   // the time in microseconds
	later   int64   // the units that equal ops in the same call have charged after this op
	charged bool    // the op charged units
}

// quota is the rest of a counter's quota after an op: the units that pass now, and the microseconds until n units pass and
// until the quota is full.
type quota struct {
	remaining, retry, reset int64
	at, generation          int64 // of the receipt
}

// quotaFunc computes the rest of a quota from a report. n is the number of units of the next take.
type quotaFunc func(a *ruleArgs, c counterReply, n int64) quota

func windowQuota(a *ruleArgs, c counterReply, n int64) (q quota) {
	used, ends := c.ints[0]-c.later, c.ints[1]
	q.remaining, q.at = max(0, a.Limit-used), ends
	if n > q.remaining {
		q.retry = ends - c.now
	}
	if used > 0 {
		q.reset = ends - c.now
	}
	return q
}

func gcraQuota(a *ruleArgs, c counterReply, n int64) (q quota) {
	r := gcra.Rule{Limit: a.Limit, Burst: a.Burst, Per: a.Per}
	level, at := c.ints[0]-c.later*a.Per, c.ints[1]
	q.remaining, q.retry, q.reset = r.Check(r.Level(at, level, c.now), max(0, at-c.now), n)
	q.at, q.generation = at, level
	return q
}

// quotaFromTimes is the quotaFunc of algorithms whose report contains the times at which units can pass.
func quotaFromTimes(a *ruleArgs, c counterReply, n int64) (q quota) {
	next, retry, reset := c.ints[1], c.ints[2], c.ints[3]
	if c.charged {
		retry = next
	}
	q.remaining, q.at = max(0, a.Limit-c.ints[0]+c.later), c.ints[4]
	if n > q.remaining {
		q.retry = retry - c.now
	}
	if reset > 0 {
		q.reset = reset - c.now
	}
	if len(c.ints) > 5 {
		q.generation = c.ints[5]
	}
	return q
}

// chargedResult returns the result of an op that charged n units to key.
func (a *ruleArgs) chargedResult(c counterReply, key string, n int64) ratelimit.Result {
	c.charged = true
	q := a.algorithm.quota(a, c, 1)
	res := a.quotaResult(q)
	res.Allowed = true
	res.Receipt = ratelimit.Receipt{Counter: fnv1a(a.hash, key), N: n, At: q.at, Generation: q.generation}
	return res
}

// peekResult returns the result of a peek of n units.
func (a *ruleArgs) peekResult(c counterReply, n int64) ratelimit.Result {
	q := a.algorithm.quota(a, c, n)
	res := a.quotaResult(q)
	res.Allowed = n <= q.remaining
	return res
}

func (a *ruleArgs) quotaResult(q quota) ratelimit.Result {
	if a.Limit == 0 {
		return ratelimit.Result{}
	}
	return ratelimit.Result{
		Limit: a.Limit, Remaining: q.remaining, RetryAfter: a.Wait(q.retry), ResetAfter: a.Wait(q.reset),
	}
}
