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

// denial is the store's latest denial of a key by a rule. It does not change once it is in a table.
type denial struct {
	key  string
	rule ratelimit.Rule
	// n is the smallest number of units that is denied until then; deniesNone if only the
	// following fields are known.
	n       int64
	until   time.Duration // by the layer's clock
	blocked bool          // the rule's Block denies everything

	remaining int64         // as reported
	reset     time.Duration // when the full quota is back, by the layer's clock
}

const deniesNone = math.MaxInt64

// result returns the result of a take of n, which d denies, or another denial in its group.
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

// ways is how many denials one set holds.
const ways = 8

// denialTable is a bounded table of denials. All denials of a key are in one set. In a full
// set, the denial that ends first makes room. Ended ones are only overwritten, so there are
// no timers and no sweeps. Readers take no lock.
type denialTable struct {
	seed maphash.Seed
	sets []denialSet // a power of two of them
}

// denialSet fills two cache lines.
type denialSet struct {
	tags    [ways]atomic.Uint32 // a hash of each key, to skip most comparisons
	entries [ways]atomic.Pointer[denial]
	// version changes when denials may have become wrong: the store's answers to earlier
	// calls are then not added.
	version atomic.Uint64
	mu      sync.Mutex // held while the above changes
	_       [16]byte
}

// newDenialTable returns a table for at least n denials.
func newDenialTable(n int) *denialTable {
	sets := 1 << bits.Len(uint((n-1)/ways))
	return &denialTable{seed: maphash.MakeSeed(), sets: make([]denialSet, sets)}
}

// setFor returns the set of a key, and its tag there.
func (t *denialTable) setFor(key string) (*denialSet, uint32) {
	hash := maphash.String(t.seed, key)
	return &t.sets[hash&uint64(len(t.sets)-1)], uint32(hash >> 32)
}

// find returns the denial about a key and a rule, nil if there is none that lasts beyond now.
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

// add adds d if the set still has that version. It replaces a denial about the same key and rule,
// unless that one denies more, or as much for longer.
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

// replace puts d in place of what is known of the same key and rule. If d has ended, it only
// removes what is known of the counter.
func (s *denialSet) replace(tag uint32, d *denial, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.until > now {
		s.putLocked(tag, d, now)
		return
	}
	s.removeLocked(d.key, d.rule)
}

// putLocked puts d in place of a denial about the same key and rule, or else in the place that is
// free or ends first. The caller holds s.mu.
func (s *denialSet) putLocked(tag uint32, d *denial, now time.Duration) {
	place, first := 0, time.Duration(math.MaxInt64)
	for i := range s.entries {
		old := s.entries[i].Load()
		if old != nil && old.until > now && old.isAbout(d.key, d.rule) {
			place = i
			break
		}
		ends := now // free
		if old != nil {
			ends = max(now, old.until)
		}
		if ends < first {
			place, first = i, ends
		}
	}
	if old := s.entries[place].Load(); old != nil && old.key == d.key {
		d.key = old.key // already a copy
	} else {
		d.key = strings.Clone(d.key) // the caller's may be part of a large string
	}
	s.tags[place].Store(tag)
	s.entries[place].Store(d)
}

// forget removes the denials about a key's counter of r, including those of blocks, and changes
// the version. It returns the version that a query with a version has afterwards: the new one
// if nothing else has changed it.
func (s *denialSet) forget(key string, r ratelimit.Rule, version uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(key, r)
	if s.version.Add(1) == version+1 {
		version++
	}
	return version
}

// removeLocked removes the denials about a key's counter of r, including those of blocks. The
// caller holds s.mu.
func (s *denialSet) removeLocked(key string, r ratelimit.Rule) {
	for i := range s.entries {
		if d := s.entries[i].Load(); d != nil && d.key == key && d.rule.SharesCounter(r) {
			s.entries[i].Store(nil)
		}
	}
}
