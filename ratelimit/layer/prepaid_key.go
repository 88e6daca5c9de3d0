package layer

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// keyState is the layer's state for one counter. It is guarded by the layer's mu.
type keyState struct {
	terms
	rule ratelimit.Rule
	key  string

	allotments []*allotment // at most two; the oldest is the first
	refill     *refill      // the refill in flight, or nil
	remaining  int64        // the store's last Remaining, or unknown
	demand     demand
	timer      *time.Timer // calls prepaidLayer.expire
}

// unknown means that a number of units is not known.
const unknown = -1

// find returns the state of op's counter. It returns nil if there is no state, or if the state belongs to another
// rule.
func (l *prepaidLayer) find(op *ratelimit.Op) *keyState {
	if k := l.keys[counterOf(op)]; k != nil && k.rule == op.Rule {
		return k
	}
	return nil
}

// track returns the state of op's counter, which it makes if necessary. It returns nil if the counter has no allotments
// for op's rule.
func (l *prepaidLayer) track(op *ratelimit.Op) *keyState {
	c := counterOf(op)
	if k := l.keys[c]; k != nil || l.closed || len(l.keys) >= l.o.MaxKeys {
		return l.find(op)
	}
	t, ok := l.o.termsOf(op.Rule)
	if !ok {
		return nil
	}
	c.key = strings.Clone(c.key) // the key may be part of a large string, which must not stay in memory
	k := &keyState{terms: t, rule: op.Rule, key: c.key, remaining: unknown}
	k.timer = time.AfterFunc(t.lifetime, func() { l.expire(c, k) })
	l.keys[c] = k
	return k
}

// expire ends the allotments that have expired. Then it forgets the key if the key is idle, and otherwise sets the
// timer again. It does nothing if k was already forgotten, because the timer can fire a second time.
func (l *prepaidLayer) expire(c counter, k *keyState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys[c] != k {
		return
	}
	now := l.now()
	l.giveBack(k, func(a *allotment) bool { return now >= a.end })
	if len(k.allotments) == 0 && k.refill == nil && now-k.demand.at > k.lifetime {
		delete(l.keys, c)
		return
	}
	k.setTimer(now)
}

// setTimer sets the timer to the end of the allotment that ends first, or to a lifetime from now if that is earlier.
func (k *keyState) setTimer(now time.Duration) {
	wait := k.lifetime
	for _, a := range k.allotments {
		wait = min(wait, a.end-now)
	}
	k.timer.Reset(wait)
}

// available returns the number of prepaid units that can be spent.
func (k *keyState) available(now time.Duration) (n int64) {
	for _, a := range k.allotments {
		if now < a.end {
			n += a.left
		}
	}
	return n
}

// spend spends n units of an allotment. It returns nil if no allotment has enough.
func (k *keyState) spend(n int64, now time.Duration) *allotment {
	for _, a := range k.allotments {
		if a.left >= n && now < a.end {
			a.left -= n
			k.demand.add(n, now, k.lifetime)
			return a
		}
	}
	return nil
}

// unitsToPrepay returns the number of units to take from the store, including the n units of a waiting take. It
// returns 0 if an allotment is not worth it.
func (k *keyState) unitsToPrepay(n int64, now time.Duration) int64 {
	extra := min(int64(k.demand.recent(now, k.lifetime)/2), k.max, k.capacity-n)
	if k.remaining != unknown {
		extra = min(extra, (k.remaining-n)/4)
	}
	if extra < 2 {
		return 0
	}
	return n + extra
}

// allotment holds the units that one call has taken in advance.
type allotment struct {
	size, left int64            // the number of units at first, and now
	renewing   bool             // the next allotment was requested
	renewTime  time.Duration    // the next allotment is taken at this time, unless half of the units are spent before
	end        time.Duration    // no unit is spent from this time on
	taken      ratelimit.Result // the store's result
	takenAt    time.Duration    // the time when the result arrived
}

// result returns the result of a take of n units of the allotment.
func (a *allotment) result(n int64, now time.Duration) ratelimit.Result {
	res, age := a.taken, now-a.takenAt
	res.Source = ratelimit.FromPrepaid
	res.Remaining += a.left
	res.Receipt.N = n
	res.ResetAfter = max(0, res.ResetAfter-age)
	res.RetryAfter = max(0, res.RetryAfter-age)
	if res.Remaining > 0 {
		res.RetryAfter = 0
	}
	return res
}

// demand estimates the number of units that were taken of a key within a lifetime. The weight of a unit decreases
// exponentially with its age.
type demand struct {
	units float64
	at    time.Duration // the time of the last update
}

func (d *demand) add(n int64, at, lifetime time.Duration) {
	*d = demand{d.recent(at, lifetime) + float64(n), at}
}

// recent returns the estimate.
func (d *demand) recent(at, lifetime time.Duration) float64 {
	return d.units * math.Exp(-float64(at-d.at)/float64(lifetime))
}

// giveBack removes the allotments for which ends returns true. It gives their unspent units back to the store in the
// background.
func (l *prepaidLayer) giveBack(k *keyState, ends func(*allotment) bool) {
	k.allotments = slices.DeleteFunc(k.allotments, func(a *allotment) bool {
		if !ends(a) {
			return false
		}
		if a.left > 0 {
			op := k.refundOp(a)
			l.running.Go(func() { l.refund(op) })
		}
		return true
	})
}

// refundOp returns the op that gives the unspent units of an allotment back to the store.
func (k *keyState) refundOp(a *allotment) ratelimit.Op {
	receipt := a.taken.Receipt
	receipt.N = a.left
	return ratelimit.Op{Rule: k.rule, Key: k.key, Kind: ratelimit.Refund, Receipt: receipt, NewGroup: true}
}
