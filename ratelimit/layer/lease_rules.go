package layer

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// leaseRule is a rule that was asked about, and what its leases are like.
type leaseRule struct {
	rule   ratelimit.Rule
	number uint64        // of the layer's rules
	most   int64         // units in a lease, 0 if the rule has none
	room   int64         // units that can be charged a life ahead
	life   time.Duration // of a lease
}

// newLeaseRule finds no leases for a rule that only counts; for one with a Block, which has
// to be noticed at once; and for one of so few units, or so short, that there is nothing
// to take in advance.
func newLeaseRule(r ratelimit.Rule, number int, o *LeaseOptions) *leaseRule {
	l := &leaseRule{rule: r, number: uint64(number), room: r.Burst(), life: min(o.Life, r.Per()/20)}
	if r.Algorithm() == "gcra" {
		l.life = min(l.life, r.Expiry()/20)
		l.room -= 1 + l.life.Microseconds()*r.Limit()/r.Per().Microseconds()
	}
	l.life = l.life.Truncate(time.Microsecond)
	most := min(o.Max, r.Burst()/o.Share, l.room)
	if r.Limit() > 0 && r.Block().After == 0 && l.life >= minLife && most >= 2 {
		l.most = most
	}
	return l
}

func (r *leaseRule) hash(seed maphash.Seed, key string) uint64 {
	const odd = 0x9e3779b97f4a7c15
	return maphash.String(seed, key) + r.number*odd
}

// maxLeaseRules bounds the search for a rule. Rules are few; those beyond, such as with
// limits made up for each call, have no leases.
const maxLeaseRules = 64

// leaseRules are the rules that were asked about.
type leaseRules struct {
	known atomic.Pointer[[]*leaseRule] // which doesn't change
	mu    sync.Mutex                   // held while one is added
}

// of returns what is known of a rule, nil if it has no leases.
func (rs *leaseRules) of(r *ratelimit.Rule, o *LeaseOptions) *leaseRule {
	known := rs.all()
	for _, k := range known {
		if k.rule == *r {
			return k.leased()
		}
	}
	if len(known) == maxLeaseRules || *r == (ratelimit.Rule{}) {
		return nil
	}
	return rs.add(r, o)
}

func (rs *leaseRules) all() []*leaseRule {
	if known := rs.known.Load(); known != nil {
		return *known
	}
	return nil
}

func (r *leaseRule) leased() *leaseRule {
	if r.most == 0 {
		return nil
	}
	return r
}

func (rs *leaseRules) add(r *ratelimit.Rule, o *LeaseOptions) *leaseRule {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	known := rs.all()
	for _, k := range known { // another may have been faster
		if k.rule == *r {
			return k.leased()
		}
	}
	if len(known) == maxLeaseRules {
		return nil
	}
	k := newLeaseRule(*r, len(known), o)
	more := append(known[:len(known):len(known)], k)
	rs.known.Store(&more)
	return k.leased()
}
