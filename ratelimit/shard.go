package ratelimit

import (
	"fmt"
	"math/bits"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
)

// shard is a part of a [MemoryStore] with a lock and bounds of its own.
type shard struct {
	mu       sync.Mutex
	subjects map[string]*subject
	bytes    int64
	// queues hold the subjects in order of use, those of similar keep together: then
	// what is over is found at the old end of one of them.
	queues [64]queue
	inUse  uint64 // bit i: queues[i] isn't empty

	maxSubjects int
	maxBytes    int64
	lives       *atomic.Int64

	_ [64]byte // apart from the next shard's lock
}

var (
	// A map takes about a third more than its slots of key and pointer.
	subjectBytes = int64(reflect.TypeFor[subject]().Size()) + 32
	counterBytes = int64(reflect.TypeFor[counter]().Size())
)

func (s *shard) init(maxSubjects int, maxBytes int64, lives *atomic.Int64) {
	s.subjects = make(map[string]*subject)
	s.maxSubjects, s.maxBytes, s.lives = maxSubjects, maxBytes, lives
}

func (s *shard) size() (subjects int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.subjects), s.bytes
}

// group runs one atomic group of ops.
func (s *shard) group(ops []Op, out []Result, clock func() int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock()
	sub := s.find(ops[0].Key, now)
	denied, err := sub.check(ops, out, now)
	if err != nil {
		return err
	}
	if !denied {
		if sub, err = s.open(sub, ops, now); err != nil {
			return err
		}
	}
	if sub == nil {
		sub = &nobody
	}
	sub.run(ops, out, denied, now, s.lives)
	s.weigh(sub)
	return nil
}

// nobody stands for a subject that isn't known, in groups that charge nothing: it has
// no counters, and such a group gives it none.
var nobody subject

// find returns the subject of key, nil if there is none or its time is over. Being
// found is being used.
func (s *shard) find(key string, now int64) *subject {
	sub := s.subjects[key]
	if sub == nil {
		return nil
	}
	if sub.over(now) {
		s.remove(sub)
		return nil
	}
	s.unlink(sub)
	s.link(sub, now)
	return sub
}

// open makes room for every counter that the group charges, so that charging cannot fail.
func (s *shard) open(sub *subject, ops []Op, now int64) (*subject, error) {
	var need, keep int64
	for i := range ops {
		if r := ops[i].Rule; ops[i].Kind.charges() && sub.find(r) == nil {
			need += counterBytes + 8*r.pair().size(r)
			keep = max(keep, r.expiry, r.span+r.interval)
		}
	}
	if need == 0 {
		return sub, nil
	}
	if sub == nil {
		need += subjectBytes + int64(len(ops[0].Key))
	}
	if err := s.makeRoom(sub, need, now); err != nil {
		return sub, err
	}
	if sub == nil {
		sub = s.add(ops[0].Key, now)
	}
	s.unlink(sub)
	sub.keep = max(sub.keep, keep)
	s.link(sub, now)
	return sub, nil
}

func (s *shard) add(key string, now int64) *subject {
	sub := &subject{key: strings.Clone(key)}
	s.subjects[sub.key] = sub
	s.link(sub, now)
	return sub
}

// makeRoom removes others than sub until need bytes fit, and also what is over: two for
// each that comes, so they never pile up.
func (s *shard) makeRoom(sub *subject, need, now int64) error {
	var own int64
	if sub != nil {
		own = sub.bytes
	}
	if own+need > s.maxBytes {
		return fmt.Errorf("%w: %d bytes > %d", ErrNoRoom, own+need, s.maxBytes)
	}
	for range 2 {
		if old := s.oldest(sub, now); old != nil && old.over(now) {
			s.remove(old)
		}
	}
	for s.bytes+need > s.maxBytes || (sub == nil && len(s.subjects) >= s.maxSubjects) {
		s.remove(s.oldest(sub, now))
	}
	return nil
}

// oldest returns a subject whose time is over, if there is one, otherwise the one idle
// longest; nil if there is none but except.
func (s *shard) oldest(except *subject, now int64) *subject {
	var idle *subject
	for rest := s.inUse; rest != 0; rest &= rest - 1 {
		old := s.queues[bits.TrailingZeros64(rest)].oldest
		if old == except {
			if old = old.newer; old == nil {
				continue
			}
		}
		if old.over(now) {
			return old
		}
		if idle == nil || old.used < idle.used {
			idle = old
		}
	}
	return idle
}

func (s *shard) remove(sub *subject) {
	s.unlink(sub)
	delete(s.subjects, sub.key)
	s.bytes -= sub.bytes
}

// weigh brings the shard's sum up to date with what the subject takes now.
func (s *shard) weigh(sub *subject) {
	if sub == &nobody {
		return
	}
	size := subjectBytes + int64(len(sub.key)) + int64(cap(sub.counters))*counterBytes
	for i := range sub.counters {
		size += 8 * int64(cap(sub.counters[i].state))
	}
	s.bytes += size - sub.bytes
	sub.bytes = size
}

func (sub *subject) over(now int64) bool { return now-sub.used >= sub.keep }
