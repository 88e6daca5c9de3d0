package layer

import (
	"strings"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// leaseRule is a rule, the size of its leases, and its keys.
type leaseRule struct {
	rule     ratelimit.Rule
	max      int64         // units in a lease, 0 if the rule has none
	capacity int64         // units that can be charged a lifetime ahead
	lifetime time.Duration // of a lease
	keys     sync.Map      // of *keyState, by key
}

// newLeaseRule returns a leaseRule without leases for a rule that only counts; for one with a
// Block, which has to take effect at once; and for one with too few units or too short a Per.
func newLeaseRule(r ratelimit.Rule, o *LeaseOptions) *leaseRule {
	l := &leaseRule{rule: r, capacity: r.Burst(), lifetime: min(o.Lifetime, r.Per()/20)}
	if r.Algorithm() == "gcra" {
		l.lifetime = min(l.lifetime, r.Expiry()/20)
		l.capacity -= 1 + l.lifetime.Microseconds()*r.Limit()/r.Per().Microseconds()
	}
	l.lifetime = l.lifetime.Truncate(time.Microsecond)
	most := min(o.Max, r.Burst()/o.Share, l.capacity)
	if r.Limit() > 0 && r.Block().After == 0 && l.lifetime >= minLifetime && most >= 2 {
		l.max = most
	}
	return l
}

// find returns the state of a key, nil if it isn't tracked.
func (r *leaseRule) find(key string) *keyState {
	if k, ok := r.keys.Load(key); ok {
		return k.(*keyState)
	}
	return nil
}

// track returns the state of a key, a new one if necessary. It returns nil if too many keys
// are tracked.
func (l *leaseLayer) track(r *leaseRule, key string) *keyState {
	if k := r.find(key); k != nil {
		return k
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := r.find(key); k != nil {
		return k
	}
	if l.closed || l.keys >= l.o.MaxKeys {
		return nil
	}
	// The key may be part of a large string, which must not stay in memory.
	k := &keyState{rule: r, key: strings.Clone(key), remaining: unknown}
	k.mu.Lock() // until the timer is set
	k.timer = time.AfterFunc(r.lifetime, func() { l.expire(k) })
	k.mu.Unlock()
	r.keys.Store(k.key, k)
	l.keys++
	return k
}

// maxLeaseRules is the maximum number of rules with leases. Further rules, such as those with a
// limit of each call's own, have no leases.
const maxLeaseRules = 64

// ruleFor returns what belongs to a rule, nil if it has no leases.
func (l *leaseLayer) ruleFor(r ratelimit.Rule) *leaseRule {
	known, ok := l.rules.Load(r)
	if !ok {
		if l.ruleCount.Load() >= maxLeaseRules {
			return nil
		}
		if known, ok = l.rules.LoadOrStore(r, newLeaseRule(r, &l.o)); !ok {
			l.ruleCount.Add(1)
		}
	}
	if known := known.(*leaseRule); known.max > 0 {
		return known
	}
	return nil
}
