package layer

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// keyState is the layer's state for one key and one rule. The caller of its methods holds mu.
type keyState struct {
	terms
	rule ratelimit.Rule
	key  string

	current atomic.Pointer[allotment] // nil if there is none; takes spend it without mu, others set it under mu

	mu        sync.Mutex
	next      *allotment  // spent after current, nil if there is none
	timer     *time.Timer // calls prepaidLayer.expire
	refill    *refill     // in flight, nil if there is none
	remaining int64       // the store's last Remaining, or unknown
	demand    demand
	removed   bool // from the layer's keys
}

// unknown stands for a number of units.
const unknown = -1

// statesOf returns the states of a key. The slice does not change.
func (l *prepaidLayer) statesOf(key string) []*keyState {
	states, _ := l.keys.Load(key)
	of, _ := states.([]*keyState)
	return of
}

// find returns the state of a key and a rule, or nil.
func (l *prepaidLayer) find(r ratelimit.Rule, key string) *keyState {
	for _, k := range l.statesOf(key) {
		if k.rule == r {
			return k
		}
	}
	return nil
}

// track returns the state of a key and a rule, which it makes if necessary. It returns nil if the rule has no
// allotments or if too many keys are tracked.
func (l *prepaidLayer) track(r ratelimit.Rule, key string) *keyState {
	if k := l.find(r, key); k != nil {
		return k
	}
	t, ok := l.o.termsOf(r)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.find(r, key); k != nil {
		return k
	}
	if l.closed || l.tracked >= l.o.MaxKeys {
		return nil
	}
	// The key may be part of a large string, which must not stay in memory.
	k := &keyState{terms: t, rule: r, key: strings.Clone(key), remaining: unknown}
	k.mu.Lock() // until the timer is set
	k.timer = time.AfterFunc(t.lifetime, func() { l.expire(k) })
	k.mu.Unlock()
	l.keys.Store(k.key, append(slices.Clip(l.statesOf(key)), k))
	l.tracked++
	return k
}

// forget removes a state. The caller holds k.mu.
func (l *prepaidLayer) forget(k *keyState) {
	if k.removed {
		return
	}
	k.removed = true
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tracked--
	rest := slices.DeleteFunc(slices.Clone(l.statesOf(k.key)), func(other *keyState) bool { return other == k })
	if len(rest) > 0 {
		l.keys.Store(k.key, rest)
	} else {
		l.keys.Delete(k.key)
	}
}

// allotments returns the current and the next allotment, if they exist.
func (k *keyState) allotments() (all []*allotment) {
	for _, a := range [...]*allotment{k.current.Load(), k.next} {
		if a != nil {
			all = append(all, a)
		}
	}
	return all
}

// spend takes n units from an allotment. It returns false if none has enough.
func (k *keyState) spend(n int64, now time.Duration) (res ratelimit.Result, ok bool) {
	for _, a := range k.allotments() {
		if left, ok := a.spend(n, now); ok {
			return a.result(n, left, now), true
		}
	}
	return res, false
}

// available returns the number of prepaid units that can be spent.
func (k *keyState) available(now time.Duration) int64 {
	return k.current.Load().available(now) + k.next.available(now)
}

// countDemand adds the units that were spent from an allotment to the demand. left is the number of units that remain
// in the allotment.
func (k *keyState) countDemand(a *allotment, left int64, now time.Duration) {
	if left != ended {
		k.demand.add(a.size-left-a.counted, now, k.lifetime)
		a.counted = a.size - left
	}
}

// unitsToPrepay returns the number of units to take from the store, including the n units of a waiting take. It
// returns 0 if an allotment is not worth it.
func (k *keyState) unitsToPrepay(n int64, now time.Duration) int64 {
	if a := k.current.Load(); a != nil {
		k.countDemand(a, a.left.Load(), now)
	}
	extra := min(int64(k.demand.recent(now, k.lifetime)/2), k.max, k.capacity-n)
	if k.remaining != unknown {
		extra = min(extra, (k.remaining-n)/4)
	}
	if extra < 2 {
		return 0
	}
	return n + extra
}

// drop ends an allotment and returns the number of units that were left.
func (k *keyState) drop(a *allotment, now time.Duration) (left int64) {
	left = a.left.Swap(ended)
	k.countDemand(a, left, now)
	if k.current.Load() == a {
		k.current.Store(nil)
	}
	if k.next == a {
		k.next = nil
	}
	return max(0, left)
}

// refundOp returns the op that gives n units of an allotment back to the store.
func (k *keyState) refundOp(a *allotment, n int64) ratelimit.Op {
	receipt := a.taken.Receipt
	receipt.N = n
	return ratelimit.Op{Rule: k.rule, Key: k.key, Kind: ratelimit.Refund, Receipt: receipt, NewGroup: true}
}

// idle reports whether the state can be forgotten.
func (k *keyState) idle(now time.Duration) bool {
	return len(k.allotments()) == 0 && k.refill == nil && now-k.demand.at > k.lifetime
}

// allotment holds the units that one call has taken in advance.
type allotment struct {
	left atomic.Int64 // unspent units, or ended
	_    [56]byte     // keeps left on its own cache line, apart from fields that do not change

	size      int64            // units at first
	renewAt   int64            // the next allotment is taken when this number of units is left,
	renewTime time.Duration    // or at this time
	end       time.Duration    // no unit is spent from then on
	taken     ratelimit.Result // the store's result
	takenAt   time.Duration    // when the result arrived
	renewing  atomic.Bool      // the next allotment was requested

	counted int64 // spent units that the key's demand includes; guarded by keyState.mu
}

const ended = -1

// spend takes n units, n > 0. It returns the number of units left, or false if there are too few.
func (a *allotment) spend(n int64, now time.Duration) (left int64, ok bool) {
	if now >= a.end {
		return 0, false
	}
	for {
		left := a.left.Load()
		if left < n {
			return left, false
		}
		if a.left.CompareAndSwap(left, left-n) {
			return left - n, true
		}
	}
}

// available returns the number of units that can be spent, 0 for nil.
func (a *allotment) available(now time.Duration) int64 {
	if a == nil || now >= a.end {
		return 0
	}
	return max(0, a.left.Load())
}

// result returns the result of a take of n units after which left units remain.
func (a *allotment) result(n, left int64, now time.Duration) ratelimit.Result {
	res, age := a.taken, now-a.takenAt
	res.Source = ratelimit.FromPrepaid
	res.Remaining += left
	res.Receipt.N = n
	res.ResetAfter = max(0, res.ResetAfter-age)
	res.RetryAfter = max(0, res.RetryAfter-age)
	if res.Remaining > 0 {
		res.RetryAfter = 0
	}
	return res
}

// demand estimates the units that were taken of a key within a lifetime. The weight of a unit decreases exponentially
// with its age.
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
