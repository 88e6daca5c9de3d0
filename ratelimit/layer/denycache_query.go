package layer

import (
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// query is a group of ops that the cache or the store answers.
type query struct {
	*denyCache
	from    int // the index of the first op in the whole list
	ops     []ratelimit.Op
	results []ratelimit.Result
	set     *denialSet
	tag     uint32

	version uint64        // the set's version before the call of the store
	sent    time.Duration // the time before the call
}

// mayInvalidate reports whether an op may end earlier denials. A charge of a GCRA also frees the units that have
// leaked at the rate of its own rule. So it may end the denials of rules with a lower rate.
func mayInvalidate(op ratelimit.Op) bool {
	switch op.Kind {
	case ratelimit.Refund, ratelimit.Reset:
		return true
	case ratelimit.Take, ratelimit.Add:
		return op.Rule.Algorithm() == "gcra"
	default:
		return false
	}
}

// answer sets the results of a group of takes and returns true, if the set knows all takes and denies at least one of
// them. Otherwise it returns false.
func (s *denialSet) answer(tag uint32, ops []ratelimit.Op, results []ratelimit.Result, now time.Duration) bool {
	known, denied := make([]*denial, 0, 8), false
	for i := range ops {
		op, n := &ops[i], unitsUpTo(ops, i)
		if op.Kind != ratelimit.Take || op.Prepaid != 0 || op.N < 1 || n > op.Rule.Burst() {
			return false
		}
		d := s.find(tag, op.Key, op.Rule, now)
		if d == nil {
			return false
		}
		known = append(known, d)
		denied = denied || n >= d.n
	}
	for i := 0; denied && i < len(ops); i++ {
		results[i] = known[i].result(unitsUpTo(ops, i), now)
	}
	return denied
}

// unitsUpTo returns the number of units that a group charges to the counter of take i, up to and including take i.
func unitsUpTo(ops []ratelimit.Op, i int) int64 {
	return ops[i].N + storage.Pending(ops[:i], ops[i].Rule.Layout().ID)
}

// begin records the version and the time before the store runs the group.
func (q *query) begin() { q.version, q.sent = q.set.version.Load(), q.now() }

// end records the denials in the results. ok is false if the call failed. A failed call may have taken effect.
func (q *query) end(ok bool) {
	for i, op := range q.ops {
		if mayInvalidate(op) && (!ok || q.results[i].Allowed || q.results[i].Source != ratelimit.FromStore) {
			if version := q.set.forget(op.Key, op.Rule, q.version); len(q.ops) == 1 {
				q.version = version // the op's own result is still right after the change
			}
		}
	}
	if !ok {
		return
	}
	last := time.Duration(0)
	for i := range q.ops {
		last = max(last, q.keepDenial(i))
	}
	for i := range q.ops {
		op, res := &q.ops[i], &q.results[i]
		if last > 0 && op.Kind == ratelimit.Take && !res.Allowed && !res.Violated && op.Rule.Block().After == 0 && res.Source == ratelimit.FromStore {
			q.keep(i, deniesNone, last) // the cache can repeat a denial of a group only if it knows all takes
		}
	}
}

// keepDenial adds the denial that the result of op i implies. It returns the time at which the denial ends, or 0 if
// there is none.
func (q *query) keepDenial(i int) time.Duration {
	op, res := &q.ops[i], &q.results[i]
	wait, n := denialTime(op, res), int64(1)
	if wait <= 0 {
		return 0
	}
	switch {
	case res.Allowed, res.Blocked > 0:
	case op.Rule.Algorithm() == "window":
		n = res.Remaining + 1 // no unit comes back before the end of the window
	default:
		n = unitsUpTo(q.ops, i)
	}
	q.keep(i, n, q.sent+wait)
	return q.sent + wait
}

// keep adds a denial of n units by the rule of op i.
func (q *query) keep(i int, n int64, until time.Duration) {
	op, res := &q.ops[i], &q.results[i]
	q.set.add(q.tag, &denial{
		key: op.Key, rule: op.Rule, n: n, until: until, blocked: res.Blocked > 0 && n != deniesNone,
		remaining: res.Remaining, reset: q.sent + res.ResetAfter,
	}, q.version, q.now())
}

// denialTime returns the time for which a result of op denies later takes, or 0 if it does not. The store has to see
// denials that may lead to a Block. Units of a Concurrent and of tentative takes may come back at any moment. Results of
// other layers are not remembered.
func denialTime(op *ratelimit.Op, res *ratelimit.Result) time.Duration {
	switch {
	case res.Source != ratelimit.FromStore, !canDeny(op.Kind), op.Prepaid != 0, op.Rule.Layout().Concurrent,
		(op.Tentative || op.Rule.Block().After > 0) && res.Blocked <= 0:
		return 0
	case res.Blocked > 0:
		return res.Blocked
	case res.Violated, res.Allowed && res.Remaining == 0:
		return res.RetryAfter
	default:
		return 0
	}
}
