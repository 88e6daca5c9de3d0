package layer

import (
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

// unspend puts n spent units back. It returns false if the lease has ended, or n is invalid.
func (h *heldLease) unspend(n int64, now time.Duration) bool {
	for now < h.end {
		left := h.left.Load()
		if left < 0 || n <= 0 || n > h.size-left {
			return false
		}
		if h.left.CompareAndSwap(left, left+n) {
			return true
		}
	}
	return false
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
	res := h.taken
	res.Source = ratelimit.FromLease
	res.Remaining += left
	res.Receipt.N = n
	res.ResetAfter = max(0, res.ResetAfter-(now-h.takenAt))
	if res.Remaining > 0 {
		res.RetryAfter = 0
	} else {
		res.RetryAfter = max(0, res.RetryAfter-(now-h.takenAt))
	}
	return res
}
