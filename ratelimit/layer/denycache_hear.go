package layer

import (
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// asking is one group of ops that the store is asked, and what the cache knew before.
type asking struct {
	*denyCache
	ops     []ratelimit.Op
	set     *noteSet
	tag     uint32
	version uint64
	sent    time.Duration
}

// before is called before the store is asked.
func (c *denyCache) before(ops []ratelimit.Op, set *noteSet, tag uint32) asking {
	for i := range ops {
		set.slow(&ops[i])
	}
	return asking{c, ops, set, tag, set.version.Load(), c.now()}
}

// slow takes note of how slowly a GCRA leaks.
func (s *noteSet) slow(op *ratelimit.Op) {
	if op.Rule.Algorithm() != "gcra" {
		return
	}
	limit := op.Rule.Limit()
	for {
		slowest := s.slowest.Load()
		if slowest != 0 && slowest <= limit || s.slowest.CompareAndSwap(slowest, limit) {
			return
		}
	}
}

// loosens tells whether op, if it takes effect, may let pass what was denied before. One
// that charges a GCRA with a higher limit than others does: it takes what leaked out at
// its own rate, which is more than others think.
func (s *noteSet) loosens(op *ratelimit.Op) bool {
	switch op.Kind {
	case ratelimit.Refund, ratelimit.Reset:
		return true
	case ratelimit.Take, ratelimit.Add:
		slowest := s.slowest.Load()
		return slowest != 0 && op.Rule.Algorithm() == "gcra" && op.Rule.Limit() > slowest
	default:
		return false
	}
}

// after is called when the store has answered; not ok if that isn't known, or it failed.
func (a *asking) after(results []ratelimit.Result, ok bool) {
	loose := false
	for i := range a.ops {
		op := &a.ops[i]
		if a.set.loosens(op) && (!ok || results[i].Allowed || results[i].Source != ratelimit.FromStore) {
			a.set.forget(op.Key, &op.Rule)
			loose = true
		}
	}
	if !ok || loose {
		return
	}
	longest := time.Duration(0)
	for i := range a.ops {
		longest = max(longest, a.hear(i, &results[i]))
	}
	if longest > 0 && len(a.ops) > 1 {
		a.remain(results, longest)
	}
}

// hear notes what the answer to op i refuses from now on, and returns until when.
func (a *asking) hear(i int, res *ratelimit.Result) time.Duration {
	op := &a.ops[i]
	wait := a.told(op, res)
	if wait <= 0 {
		return 0
	}
	t := &note{
		key: op.Key, rule: op.Rule, n: 1, until: a.sent + wait, blocked: res.Blocked > 0,
		remaining: res.Remaining, reset: a.sent + res.ResetAfter,
	}
	switch {
	case res.Allowed:
	case op.Rule.Algorithm() == "window" && a.block == 0:
		t.n = res.Remaining + 1 // nothing comes back before the window's end
	case op.Kind == ratelimit.Take:
		t.n = op.N + pending(a.ops[:i], &op.Rule)
	default:
		t.n = op.N
	}
	a.set.put(a.tag, t, a.version, a.now())
	return t.until
}

// told returns for how long an answer to op denies what comes after it, 0 if it doesn't
// say: the store has to see what may count for a Block; and it has to be the store's own.
func (a *asking) told(op *ratelimit.Op, res *ratelimit.Result) time.Duration {
	blocks := op.Rule.Block().After > 0
	denied := res.Violated && op.Kind == ratelimit.Take
	switch {
	case res.Source != ratelimit.FromStore, op.Kind == ratelimit.Count, op.Prepaid != 0, blocks && res.Blocked <= 0:
		return 0
	case a.block > 0 && !denied:
		return 0 // the store has to see the take that begins the block
	case res.Blocked > 0:
		return max(res.Blocked, a.block)
	case denied:
		return max(res.RetryAfter, a.block)
	case res.Violated, res.Allowed && res.Remaining == 0:
		return res.RetryAfter
	default:
		return 0
	}
}

// remain notes what is left by those of a group that have not denied it, so that it can be
// answered when it is denied again.
func (a *asking) remain(results []ratelimit.Result, until time.Duration) {
	for i := range a.ops {
		op, res := &a.ops[i], &results[i]
		if op.Kind != ratelimit.Take || res.Allowed || res.Violated || op.Rule.Block().After > 0 || res.Source != ratelimit.FromStore {
			continue
		}
		a.set.put(a.tag, &note{
			key: op.Key, rule: op.Rule, n: refusesNone, until: until,
			remaining: res.Remaining, reset: a.sent + res.ResetAfter,
		}, a.version, a.now())
	}
}

// pending is what ops charge to r's counter.
func pending(ops []ratelimit.Op, r *ratelimit.Rule) (n int64) {
	for i := range ops {
		op := &ops[i]
		if (op.Kind == ratelimit.Take || op.Kind == ratelimit.Add) && op.Rule.SharesCounter(*r) {
			n += op.N
		}
	}
	return n
}
