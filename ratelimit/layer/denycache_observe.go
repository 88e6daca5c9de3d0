package layer

import (
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// pendingQuery is a group of ops that the store runs, and the state of the cache before.
type pendingQuery struct {
	*denyCache
	ops     []ratelimit.Op
	results []ratelimit.Result // set before observe
	set     *denialSet
	tag     uint32
	version uint64
	sent    time.Duration
}

// beginQuery returns the query of a group, before the store runs it.
func (c *denyCache) beginQuery(ops []ratelimit.Op, results []ratelimit.Result, set *denialSet, tag uint32) pendingQuery {
	for i := range ops {
		set.observeLimit(&ops[i])
	}
	return pendingQuery{c, ops, results, set, tag, set.version.Load(), c.now()}
}

// observeResults keeps what the store answered. ok is false if the query failed, and may have taken
// effect all the same.
func (q *pendingQuery) observeResults(ok bool) {
	for i := range q.ops {
		op := &q.ops[i]
		if q.set.mayInvalidate(op) && (!ok || q.results[i].Allowed || q.results[i].Source != ratelimit.FromStore) {
			q.set.forget(op.Key, op.Rule) // changes the version, so that nothing is added below
		}
	}
	if !ok {
		return
	}
	last := time.Duration(0)
	for i := range q.ops {
		last = max(last, q.observeDenial(i))
	}
	if last > 0 && len(q.ops) > 1 {
		q.observeRemaining(last)
	}
}

// observeDenial keeps what the result of op i denies from now on, and returns until when.
func (q *pendingQuery) observeDenial(i int) time.Duration {
	op, res := &q.ops[i], &q.results[i]
	wait := q.denialTime(op, res)
	if wait <= 0 {
		return 0
	}
	d := &denial{
		key: op.Key, rule: op.Rule, n: 1, until: q.sent + wait, blocked: res.Blocked > 0,
		remaining: res.Remaining, reset: q.sent + res.ResetAfter,
	}
	switch {
	case res.Allowed:
	case op.Rule.Algorithm() == "window" && q.block == 0:
		d.n = res.Remaining + 1 // no unit comes back before the window ends
	case op.Kind == ratelimit.Take:
		d.n = op.N + chargedUnits(q.ops[:i], op.Rule)
	default:
		d.n = op.N
	}
	q.set.add(q.tag, d, q.version, q.now())
	return d.until
}

// denialTime returns for how long a result of op denies later takes, 0 if it doesn't: the store
// has to see denials that may lead to a Block, and other layers' results are not its own.
func (q *pendingQuery) denialTime(op *ratelimit.Op, res *ratelimit.Result) time.Duration {
	hasBlock := op.Rule.Block().After > 0
	denied := res.Violated && op.Kind == ratelimit.Take
	switch {
	case res.Source != ratelimit.FromStore, op.Kind == ratelimit.Count, op.Prepaid != 0, hasBlock && res.Blocked <= 0:
		return 0
	case q.block > 0 && !denied:
		return 0 // the store has to see the take that starts DenyCacheOptions.Block
	case res.Blocked > 0:
		return max(res.Blocked, q.block)
	case denied:
		return max(res.RetryAfter, q.block)
	case res.Violated, res.Allowed && res.Remaining == 0:
		return res.RetryAfter
	default:
		return 0
	}
}

// observeRemaining keeps what remains by the rules that did not deny a denied group, so that
// the cache can answer the group when it denies it again.
func (q *pendingQuery) observeRemaining(until time.Duration) {
	for i := range q.ops {
		op, res := &q.ops[i], &q.results[i]
		if op.Kind != ratelimit.Take || res.Allowed || res.Violated || op.Rule.Block().After > 0 || res.Source != ratelimit.FromStore {
			continue
		}
		q.set.add(q.tag, &denial{
			key: op.Key, rule: op.Rule, n: deniesNone, until: until,
			remaining: res.Remaining, reset: q.sent + res.ResetAfter,
		}, q.version, q.now())
	}
}

// chargedUnits returns the units that ops charge to r's counter.
func chargedUnits(ops []ratelimit.Op, r ratelimit.Rule) (n int64) {
	for i := range ops {
		op := &ops[i]
		if (op.Kind == ratelimit.Take || op.Kind == ratelimit.Add) && op.Rule.SharesCounter(r) {
			n += op.N
		}
	}
	return n
}
