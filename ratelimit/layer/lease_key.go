package layer

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// heldLease holds the units of one lease.
type heldLease struct {
	left atomic.Int64 // unspent units, ended once the lease has ended
	_    [56]byte     // keeps left on a cache line apart from what doesn't change

	size      int64            // units at first
	renewAt   int64            // the next lease is taken when no more units are left,
	renewTime time.Duration    // or at this time
	end       time.Duration    // no unit is spent from then on
	taken     ratelimit.Result // the store's result for the lease
	takenAt   time.Duration    // when it came
	renewing  atomic.Bool      // the next lease was requested

	counted int64 // spent units that the key's demand includes; guarded by keyState.mu
}

const ended = -1

// spend takes n units, n > 0. It returns how many are left, or false if there are too few.
func (h *heldLease) spend(n int64, now time.Duration) (left int64, ok bool) {
	if now >= h.end {
		return 0, false
	}
	for {
		left := h.left.Load()
		if left < n {
			return left, false
		}
		if h.left.CompareAndSwap(left, left-n) {
			return left - n, true
		}
	}
}

// available returns how many units can be spent. A nil lease has none.
func (h *heldLease) available(now time.Duration) int64 {
	if h == nil || now >= h.end {
		return 0
	}
	return max(0, h.left.Load())
}

// result returns the result of a take of n that left so many units.
func (h *heldLease) result(n, left int64, now time.Duration) ratelimit.Result {
	res, age := h.taken, now-h.takenAt
	res.Source = ratelimit.FromLease
	res.Remaining += left
	res.Receipt.N = n
	res.ResetAfter = max(0, res.ResetAfter-age)
	res.RetryAfter = max(0, res.RetryAfter-age)
	if res.Remaining > 0 {
		res.RetryAfter = 0
	}
	return res
}

// keyState is the layer's state for one key of one rule. The caller of its methods holds mu.
type keyState struct {
	rule *leaseRule
	key  string

	current atomic.Pointer[heldLease] // takes spend it, nil if there is none; set under mu

	mu        sync.Mutex
	next      *heldLease  // spent after current, nil if there is none
	timer     *time.Timer // calls leaseLayer.expire
	refill    *refillCall // in flight, nil if there is none
	resets    int         // in flight; none of them sees a new lease
	remaining int64       // the store's last Remaining, or unknown
	demand    demand
	removed   bool // from the rule's keys
}

// unknown stands for a number of units.
const unknown = -1

// leases returns the leases that there are, the older first.
func (k *keyState) leases() (leases []*heldLease) {
	for _, h := range [...]*heldLease{k.current.Load(), k.next} {
		if h != nil {
			leases = append(leases, h)
		}
	}
	return leases
}

// spend takes n units from a lease.
func (k *keyState) spend(n int64, now time.Duration) (res ratelimit.Result, ok bool) {
	for _, h := range k.leases() {
		if left, ok := h.spend(n, now); ok {
			return h.result(n, left, now), true
		}
	}
	return res, false
}

// available returns how many leased units can be spent.
func (k *keyState) available(now time.Duration) int64 {
	return k.current.Load().available(now) + k.next.available(now)
}

// countDemand adds the units that were spent from a lease to the demand. left is the number of units
// that remain in the lease.
func (k *keyState) countDemand(h *heldLease, left int64, now time.Duration) {
	if left != ended {
		k.demand.add(h.size-left-h.counted, now, k.rule.lifetime)
		h.counted = h.size - left
	}
}

// unitsToLease returns how many units to take from the store for a take of n, or for none if n is
// 0. It returns 0 if a lease is not worth it.
func (k *keyState) unitsToLease(n int64, now time.Duration) int64 {
	if h := k.current.Load(); h != nil {
		k.countDemand(h, h.left.Load(), now)
	}
	extra := min(int64(k.demand.recent(now, k.rule.lifetime)/2), k.rule.max, k.rule.capacity-n)
	if k.remaining != unknown {
		extra = min(extra, (k.remaining-n)/4)
	}
	if extra < 2 || k.resets > 0 {
		return 0
	}
	return n + extra
}

// drop ends a lease and returns the units that were left.
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

// idle reports whether the key may be forgotten.
func (k *keyState) idle(now time.Duration) bool {
	return len(k.leases()) == 0 && k.refill == nil && k.resets == 0 && now-k.demand.at > k.rule.lifetime
}

// demand counts the units that were taken of a key. A unit counts less and less, so that
// the units of a steady demand add up to those of one lifetime of a lease.
type demand struct {
	units float64
	at    time.Duration // when it was so much
}

func (d *demand) add(n int64, at, lifetime time.Duration) {
	*d = demand{d.recent(at, lifetime) + float64(n), at}
}

// recent estimates the units of the last lifetime.
func (d *demand) recent(at, lifetime time.Duration) float64 {
	return d.units * math.Exp(-float64(at-d.at)/float64(lifetime))
}
