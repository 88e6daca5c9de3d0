package layer

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// lent is the units of one lease.
type lent struct {
	rest atomic.Int64 // units left, closed from when it ends
	_    [56]byte     // apart from what doesn't change

	of    *holding
	size  int64            // units that there were
	low   int64            // another lease is taken when there are no more than these,
	early time.Duration    // or at this time
	end   time.Duration    // from when on nothing is spent
	got   ratelimit.Result // what the store said when it was taken
	at    time.Duration    // when that came
	asked atomic.Bool      // another one was asked for

	counted int64 // units that the demand knows of; guarded by of.mu
	index   int   // among the endings, or notListed; guarded by those
}

const closed = -1

// spend takes n units, which are more than 0, and tells how many are left, or that there
// are too few.
func (l *lent) spend(n int64, now time.Duration) (left int64, ok bool) {
	if now >= l.end {
		return 0, false
	}
	for {
		rest := l.rest.Load()
		if rest < n {
			return rest, false
		}
		if l.rest.CompareAndSwap(rest, rest-n) {
			return rest - n, true
		}
	}
}

// restore puts back n units that were spent, and tells whether it could.
func (l *lent) restore(n int64, now time.Duration) bool {
	for now < l.end {
		rest := l.rest.Load()
		if rest < 0 || n <= 0 || n > l.size-rest {
			return false
		}
		if l.rest.CompareAndSwap(rest, rest+n) {
			return true
		}
	}
	return false
}

// close ends the lease and returns the units that were left.
func (l *lent) close() int64 { return max(0, l.rest.Swap(closed)) }

// alive returns how many units can be spent.
func (l *lent) alive(now time.Duration) int64 {
	if l == nil || now >= l.end {
		return 0
	}
	return max(0, l.rest.Load())
}

// result is that of a take of n which left so many units.
func (l *lent) result(n, left int64, now time.Duration) ratelimit.Result {
	res := l.got
	res.Source = ratelimit.FromLease
	res.Remaining += left
	res.Receipt.N = n
	res.ResetAfter = max(0, res.ResetAfter-(now-l.at))
	if res.Remaining > 0 {
		res.RetryAfter = 0
	} else {
		res.RetryAfter = max(0, res.RetryAfter-(now-l.at))
	}
	return res
}

// back is what gives n units of the lease back to the store.
func (l *lent) back(n int64) ratelimit.Op {
	c := l.got.Receipt
	c.N = n
	return ratelimit.Op{Rule: l.of.rule.rule, Key: l.of.key, Kind: ratelimit.Refund, Receipt: c, NewGroup: true}
}

// holding is what the layer knows of one key of one rule.
type holding struct {
	rule *leaseRule
	key  string
	hash uint64
	next atomic.Pointer[holding] // in its chain

	cur atomic.Pointer[lent] // what is spent, nil if there is none; set under mu

	mu      sync.Mutex
	spare   *lent   // what is spent next, nil if there is none
	refill  *refill // the call under way that takes a lease, nil if there is none
	resets  int     // under way
	waiting int64   // units of those who wait for the refill
	left    int64   // what the store had left last, or notKnown
	demand  demand
	retired bool // it is not in the table any more
}

// notKnown stands for a number of units.
const notKnown = -1

// spend takes n units from what is leased. The caller holds mu.
func (h *holding) spend(n int64, now time.Duration) (res ratelimit.Result, ok bool) {
	for _, l := range [...]*lent{h.cur.Load(), h.spare} {
		if l == nil {
			continue
		}
		if left, ok := l.spend(n, now); ok {
			return l.result(n, left, now), true
		}
	}
	return res, false
}

// own returns how many units are leased and not spent. The caller holds mu.
func (h *holding) own(now time.Duration) int64 { return h.cur.Load().alive(now) + h.spare.alive(now) }

// advance puts the spare in place of what is spent or over, which it returns if there is
// nothing left to give back. The caller holds mu.
func (h *holding) advance(now time.Duration) (spent *lent) {
	l := h.cur.Load()
	if l.alive(now) > 0 || l == nil && h.spare == nil {
		return nil
	}
	h.cur.Store(h.spare)
	h.spare = nil
	if l == nil {
		return nil
	}
	h.count(l, l.rest.Load(), now)
	if l.rest.CompareAndSwap(0, closed) {
		return l
	}
	return nil
}

// count tells the demand what was spent of a lease that has so many units left. The caller
// holds mu.
func (h *holding) count(l *lent, rest int64, now time.Duration) {
	if l == nil || rest < 0 {
		return
	}
	h.demand.note(l.size-rest-l.counted, now, h.rule.life)
	l.counted = l.size - rest
}

// want returns how many units to take from the store for a take of n, or for none: n, or
// more if a lease is worth it. The caller holds mu.
func (h *holding) want(n int64, now time.Duration) int64 {
	if l := h.cur.Load(); l != nil {
		h.count(l, l.rest.Load(), now)
	}
	k := max(h.demand.recent(now, h.rule.life)/2, h.waiting)
	k = min(k, h.rule.most, h.rule.room-n)
	if h.left != notKnown {
		k = min(k, (h.left-n)/4)
	}
	if k < 2 || h.resets > 0 {
		return n
	}
	return n + k
}

// drop ends a lease here, and returns what was left of it. The caller holds mu.
func (h *holding) drop(l *lent, now time.Duration) (rest int64) {
	rest = l.close()
	h.count(l, rest, now)
	if h.cur.Load() == l {
		h.cur.Store(nil)
	}
	if h.spare == l {
		h.spare = nil
	}
	return rest
}

// retire tells whether nobody has asked for the key lately, and it may be forgotten.
func (h *holding) retire(now time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.retired = h.cur.Load() == nil && h.spare == nil && h.refill == nil && h.waiting == 0 && h.resets == 0 &&
		h.demand.idle(now, h.rule.life)
	return h.retired
}
