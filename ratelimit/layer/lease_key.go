package layer

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// keyState is what the layer keeps of one key of one rule.
type keyState struct {
	rule *leaseRule
	key  string

	current atomic.Pointer[heldLease] // takes spend it, nil if there is none; set under mu

	mu        sync.Mutex
	next      *heldLease  // spent after current, nil if there is none
	timer     *time.Timer // calls leaseLayer.expire
	refill    *refillCall // in flight, nil if there is none
	resets    int         // in flight; none of them sees a new lease
	waiting   int64       // units that callers wait for
	remaining int64       // the store's last Remaining, or unknown
	demand    demand
	removed   bool // from the rule's keys
}

// unknown stands for a number of units.
const unknown = -1

// leases returns both leases, the older first; they may be nil. The caller holds mu.
func (k *keyState) leases() [2]*heldLease { return [2]*heldLease{k.current.Load(), k.next} }

// spend takes n units from a lease. The caller holds mu.
func (k *keyState) spend(n int64, now time.Duration) (res ratelimit.Result, ok bool) {
	for _, h := range k.leases() {
		if h == nil {
			continue
		}
		if left, ok := h.spend(n, now); ok {
			return h.result(n, left, now), true
		}
	}
	return res, false
}

// available returns how many leased units can be spent. The caller holds mu.
func (k *keyState) available(now time.Duration) int64 {
	return k.current.Load().available(now) + k.next.available(now)
}

// countDemand adds to the demand what was spent of a lease of which so many units are left. The
// caller holds mu.
func (k *keyState) countDemand(h *heldLease, left int64, now time.Duration) {
	if left < 0 {
		return
	}
	k.demand.add(h.size-left-h.counted, now, k.rule.lifetime)
	h.counted = h.size - left
}

// unitsToTake returns how many units to take from the store for a take of n, or for none if n is 0:
// n, or more if a lease is worth it. The caller holds mu.
func (k *keyState) unitsToTake(n int64, now time.Duration) int64 {
	if h := k.current.Load(); h != nil {
		k.countDemand(h, h.left.Load(), now)
	}
	extra := max(k.demand.recent(now, k.rule.lifetime)/2, k.waiting)
	extra = min(extra, k.rule.max, k.rule.capacity-n)
	if k.remaining != unknown {
		extra = min(extra, (k.remaining-n)/4)
	}
	if extra < 2 || k.resets > 0 {
		return n
	}
	return n + extra
}

// drop ends a lease and returns the units that were left. The caller holds mu.
func (k *keyState) drop(h *heldLease, now time.Duration) (left int64) {
	left = h.left.Swap(ended)
	k.countDemand(h, left, now)
	if k.current.Load() == h {
		k.current.Store(nil)
	}
	if k.next == h {
		k.next = nil
	}
	return max(0, left)
}

// refundOp returns the op that gives n units of a lease back to the store.
func (k *keyState) refundOp(h *heldLease, n int64) ratelimit.Op {
	receipt := h.taken.Receipt
	receipt.N = n
	return ratelimit.Op{Rule: k.rule.rule, Key: k.key, Kind: ratelimit.Refund, Receipt: receipt, NewGroup: true}
}

// idle reports whether the key may be forgotten. The caller holds mu.
func (k *keyState) idle(now time.Duration) bool {
	return k.current.Load() == nil && k.next == nil && k.refill == nil && k.waiting == 0 && k.resets == 0 &&
		k.demand.idle(now, k.rule.lifetime)
}

// demand counts the units that were taken of a key, in periods of a lease's lifetime. The zero
// value is no demand.
type demand struct {
	period        time.Duration // the number of the present one
	now, previous int64         // units in this period, and in the one before
}

func (d *demand) add(n int64, at, lifetime time.Duration) {
	d.advance(at, lifetime)
	d.now += n
}

// recent estimates the units of the last lifetime: those of the present period, and a part of
// the previous one.
func (d *demand) recent(at, lifetime time.Duration) int64 {
	d.advance(at, lifetime)
	rest := lifetime - at%lifetime
	return d.now + int64(float64(d.previous)*float64(rest)/float64(lifetime))
}

// idle reports whether both periods have passed.
func (d *demand) idle(at, lifetime time.Duration) bool { return at/lifetime > d.period+1 }

func (d *demand) advance(at, lifetime time.Duration) {
	switch period := at / lifetime; {
	case period == d.period:
	case period == d.period+1:
		d.period, d.now, d.previous = period, 0, d.now
	default:
		*d = demand{period: period}
	}
}
