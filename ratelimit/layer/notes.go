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

// note is what the store has told of one counter, or of its block. A note that others can
// find doesn't change any more.
type note struct {
	key  string
	rule ratelimit.Rule // with whose limit it was told
	// n is the least number of units that is refused until then, at limits up to the
	// rule's; refusesNone if it is only known what remains.
	n       int64
	until   time.Duration // on the layer's clock
	blocked bool          // everything is refused, by the rule's Block

	remaining int64         // as told
	reset     time.Duration // when the full quota is back, on the layer's clock
}

const refusesNone = math.MaxInt64

// refuses tells whether a take of n by r is surely denied, as long as the note lasts.
func (t *note) refuses(n int64, r *ratelimit.Rule) bool {
	return t.blocked || n >= t.n && r.Limit() <= t.rule.Limit() && r.Burst() <= t.rule.Burst()
}

// covers tells whether t refuses whatever other does.
func (t *note) covers(other *note) bool { return t.refuses(other.n, &other.rule) }

// ways is how many notes have a place in one set.
const ways = 8

// notes is a bounded table of notes on the counters of keys. All notes of a key are in one
// set, and who has no place there makes the one go that ends first. Nothing else removes
// notes that are over, so there are no timers and no sweeps. Readers take no lock.
type notes struct {
	seed maphash.Seed
	sets []noteSet // a power of two of them
}

// noteSet is one set. It fills two cache lines.
type noteSet struct {
	tags [ways]atomic.Uint32 // a hash of the note's key, to pass over most of the others
	at   [ways]atomic.Pointer[note]
	// version changes when notes of the set may have become wrong: what was asked before
	// is then not noted any more.
	version atomic.Uint64
	mu      sync.Mutex   // held by who changes the above
	slowest atomic.Int64 // see DenyCache.loosens
	_       [8]byte
}

// newNotes returns a table for that many notes, or a little more.
func newNotes(n int) *notes {
	sets := 1 << bits.Len(uint((n-1)/ways))
	return &notes{seed: maphash.MakeSeed(), sets: make([]noteSet, sets)}
}

// place returns the set of a key and its tag there.
func (t *notes) place(key string) (*noteSet, uint32) {
	hash := maphash.String(t.seed, key)
	return &t.sets[hash&uint64(len(t.sets)-1)], uint32(hash >> 32)
}

// find returns the note on the counter of r, or on its block if r has one; nil if there
// is none that lasts beyond now.
func (s *noteSet) find(tag uint32, key string, r *ratelimit.Rule, now time.Duration) *note {
	for i := range s.tags {
		if s.tags[i].Load() != tag {
			continue
		}
		t := s.at[i].Load()
		if t != nil && t.until > now && t.key == key && t.rule.Block() == r.Block() && t.rule.SharesCounter(*r) {
			return t
		}
	}
	return nil
}

// put notes t, if the set's version still is this one: instead of what was noted of the
// same, unless that refuses more, or as much for longer.
func (s *noteSet) put(tag uint32, t *note, version uint64, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version.Load() != version || t.until <= now {
		return
	}
	if old := s.find(tag, t.key, &t.rule, now); old != nil && old.covers(t) && (old.until >= t.until || !t.covers(old)) {
		return
	}
	s.set(tag, t, now)
}

// set notes t instead of what was noted of the same, if anything, else in a place that is
// free, or is free the soonest. The caller holds s.mu.
func (s *noteSet) set(tag uint32, t *note, now time.Duration) {
	place, first := 0, time.Duration(math.MaxInt64)
	for i := range s.at {
		old := s.at[i].Load()
		switch {
		case old == nil || old.until <= now:
			if first > now {
				place, first = i, now
			}
		case old.key == t.key && old.rule.Block() == t.rule.Block() && old.rule.SharesCounter(t.rule):
			place, first = i, math.MinInt64
		case old.until < first:
			place, first = i, old.until
		}
		if first == math.MinInt64 {
			break
		}
	}
	if old := s.at[place].Load(); old != nil && old.key == t.key {
		t.key = old.key // which is our own
	} else {
		t.key = strings.Clone(t.key) // the caller's may be a part of something large
	}
	s.tags[place].Store(tag)
	s.at[place].Store(t)
}

// forget removes the notes on a key's counter of r, those on blocks included. What was
// asked before is not noted any more.
func (s *noteSet) forget(key string, r *ratelimit.Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version.Add(1)
	s.remove(key, r)
}

// remove removes the notes on a key's counter of r, those on blocks included. The caller
// holds s.mu.
func (s *noteSet) remove(key string, r *ratelimit.Rule) {
	for i := range s.at {
		if t := s.at[i].Load(); t != nil && t.key == key && t.rule.SharesCounter(*r) {
			s.at[i].Store(nil)
		}
	}
}

// replace notes t instead of what was noted of the same. One that is over removes that.
func (s *noteSet) replace(tag uint32, t *note, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.until > now {
		s.set(tag, t, now)
		return
	}
	s.remove(t.key, &t.rule)
}
