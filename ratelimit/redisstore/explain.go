package redisstore

import (
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/gcra"
)

// shown is what a script shows of a counter after an op: the algorithm's integers, and the time
// in microseconds.
type shown struct {
	ints []int64
	now  int64
	// later is how many units were charged after the op, by equal takes of the same moment.
	later int64
	// charged is set if the op has charged units.
	charged bool
}

// quota is what a counter leaves after an op: how many units pass now, and the microseconds
// until n pass and until all quota is there.
type quota struct {
	remaining, retry, reset int64
	at, life                int64 // of the receipt
}

// explain returns the quota that is left by a rule's counter.
type explain func(a *ruleArgs, s shown, n int64) quota

func explainWindow(a *ruleArgs, s shown, n int64) (q quota) {
	used, ends := s.ints[0]-s.later, s.ints[1]
	q.remaining, q.at = max(0, a.limit-used), ends
	if n > q.remaining {
		q.retry = ends - s.now
	}
	if used > 0 {
		q.reset = ends - s.now
	}
	return q
}

func explainGCRA(a *ruleArgs, s shown, n int64) (q quota) {
	r := gcra.Rule{Limit: a.limit, Burst: a.burst, Per: a.per}
	level, at := s.ints[0]-s.later*a.per, s.ints[1]
	q.remaining, q.retry, q.reset = r.Check(r.Level(at, level, s.now), max(0, at-s.now), n)
	q.at, q.life = at, level
	return q
}

// explainSearched is for algorithms whose scripts search for the times.
func explainSearched(a *ruleArgs, s shown, n int64) (q quota) {
	next, retry, reset := s.ints[1], s.ints[2], s.ints[3]
	if s.charged {
		retry = next
	}
	q.remaining, q.at = max(0, a.limit-s.ints[0]+s.later), s.ints[4]
	if n > q.remaining {
		q.retry = retry - s.now
	}
	if reset > 0 {
		q.reset = reset - s.now
	}
	if len(s.ints) > 5 {
		q.life = s.ints[5]
	}
	return q
}

// charged returns the result of an op that has charged n units to key.
func (a *ruleArgs) charged(s shown, key string, n int64) ratelimit.Result {
	s.charged = true
	q := a.algorithm.explain(a, s, 1)
	res := a.result(q)
	res.Allowed = true
	res.Receipt = ratelimit.Receipt{Counter: a.receiptCounter(key), N: n, At: q.at, Generation: q.life}
	return res
}

// evaluate returns what a take of n would get.
func (a *ruleArgs) evaluate(s shown, n int64) ratelimit.Result {
	q := a.algorithm.explain(a, s, n)
	res := a.result(q)
	res.Allowed = n <= q.remaining
	return res
}

func (a *ruleArgs) result(q quota) ratelimit.Result {
	if a.limit == 0 {
		return ratelimit.Result{}
	}
	return ratelimit.Result{
		Limit: a.limit, Remaining: q.remaining, RetryAfter: microseconds(q.retry), ResetAfter: microseconds(q.reset),
	}
}

// microseconds saturates.
func microseconds(n int64) time.Duration {
	return time.Duration(min(n, ratelimit.MaxDuration.Microseconds())) * time.Microsecond
}
