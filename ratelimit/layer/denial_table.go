package layer

import (
	"hash/maphash"
	"math"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// denial is the store's latest denial of a key by a rule. It does not change while it is in a table. Times are by the
// layer's clock.
type denial struct {
	key     string
	rule    ratelimit.Rule
	n       int64 // takes of n or more units are denied; deniesNone means that all takes may pass
	until   time.Duration
	blocked bool // whether the rule's Block denies all takes

	remaining int64         // the Remaining that the store reported
	reset     time.Duration // when the full quota is back
}

const deniesNone = math.MaxInt64

// result returns the result of a take of n units, in a group that d or another denial denies.
func (d *denial) result(n int64, now time.Duration) ratelimit.Result {
	res := ratelimit.Result{
		Source: ratelimit.FromDenyCache, Limit: d.rule.Limit(), Violated: n >= d.n,
		Remaining: d.remaining, ResetAfter: max(0, d.reset-now),
	}
	if res.Violated {
		res.RetryAfter = d.until - now
		res.ResetAfter = max(res.ResetAfter, res.RetryAfter)
	}
	if d.blocked {
		res.Remaining, res.Blocked = 0, res.RetryAfter
	}
	return res
}

func (d *denial) isAbout(key string, r ratelimit.Rule) bool { return d.rule == r && d.key == key }

// ways is the number of denials in a set.
const ways = 8

// denialTable is a table of denials with a fixed size. All denials of a key are in the same set. A new denial in a
// full set replaces the one that ends first. A denial that has ended stays until it is replaced, so the table needs
// no timer. Readers take no lock.
type denialTable struct {
	seed maphash.Seed
	sets []denialSet // the number of sets is a power of two
}

// A denialSet has the size of two cache lines.
type denialSet struct {
	tags    [ways]atomic.Uint32 // a hash of each key, which avoids most comparisons
	entries [ways]atomic.Pointer[denial]
	// version changes when denials of the set may have become wrong. A result that was requested before the change is
	// then not added.
	version atomic.Uint64
	mu      sync.Mutex // must be held to change the fields above
	_       [16]byte
}

// newDenialTable returns a table that has places for at least n denials.
func newDenialTable(n int) *denialTable {
	sets := 1 << bits.Len(uint((n-1)/ways))
	return &denialTable{seed: maphash.MakeSeed(), sets: make([]denialSet, sets)}
}

// setFor returns the set and the tag of a key.
func (t *denialTable) setFor(key string) (*denialSet, uint32) {
	hash := maphash.String(t.seed, key)
	return &t.sets[hash&uint64(len(t.sets)-1)], uint32(hash >> 32)
}

// find returns the denial of a key by a rule, or nil if there is none or it has ended.
func (s *denialSet) find(tag uint32, key string, r ratelimit.Rule, now time.Duration) *denial {
	for i := range s.tags {
		if s.tags[i].Load() != tag {
			continue
		}
		if d := s.entries[i].Load(); d != nil && d.until > now && d.isAbout(key, r) {
			return d
		}
	}
	return nil
}

// add adds d if the set still has the given version. It keeps an earlier denial of the key by the rule if that denial
// denies more than d, or as much for longer.
func (s *denialSet) add(tag uint32, d *denial, version uint64, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version.Load() != version || d.until <= now {
		return
	}
	if old := s.find(tag, d.key, d.rule, now); old != nil && (old.n < d.n || old.n == d.n && old.until >= d.until) {
		return
	}
	s.putLocked(tag, d, now)
}

// replace replaces the denial of d's key by d's rule with d. If d has ended, it removes all denials of the counter
// instead.
func (s *denialSet) replace(tag uint32, d *denial, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.until > now {
		s.putLocked(tag, d, now)
		return
	}
	s.removeLocked(d.key, d.rule)
}

// putLocked replaces the denial of d's key by d's rule with d. If there is none, d takes a free place or replaces the
// denial that ends first. The caller holds s.mu.
func (s *denialSet) putLocked(tag uint32, d *denial, now time.Duration) {
	place, first := 0, time.Duration(math.MaxInt64)
	for i := range s.entries {
		old := s.entries[i].Load()
		if old != nil && old.until > now && old.isAbout(d.key, d.rule) {
			place = i
			break
		}
		ends := now // the place is free
		if old != nil {
			ends = max(now, old.until)
		}
		if ends < first {
			place, first = i, ends
		}
	}
	if old := s.entries[place].Load(); old != nil && old.key == d.key {
		d.key = old.key // was cloned before
	} else {
		d.key = strings.Clone(d.key) // d.key may be part of a large string
	}
	s.tags[place].Store(tag)
	s.entries[place].Store(d)
}

// forget removes all denials of the key's counter for r, and changes the set's version. If the set had the given
// version, forget returns the new version. Otherwise it returns the given version.
func (s *denialSet) forget(key string, r ratelimit.Rule, version uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(key, r)
	if s.version.Add(1) == version+1 {
		version++
	}
	return version
}

// removeLocked removes all denials of the key's counter for r. The caller holds s.mu.
func (s *denialSet) removeLocked(key string, r ratelimit.Rule) {
	for i := range s.entries {
		if d := s.entries[i].Load(); d != nil && d.key == key && d.rule.Layout().ID == r.Layout().ID {
			s.entries[i].Store(nil)
		}
	}
}
