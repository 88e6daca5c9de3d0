package ratelimit

import "math/bits"

// queue is a list of subjects in order of use.
type queue struct {
	newest, oldest *subject
}

// class returns the number of the queue for subjects that are kept that long: in one
// queue, none is kept twice as long as another.
func class(keep int64) int { return bits.Len64(uint64(keep)) }

// link makes sub the newest of its queue.
func (s *shard) link(sub *subject, now int64) {
	i := class(sub.keep)
	q := &s.queues[i]
	sub.used, sub.newer, sub.older = now, nil, q.newest
	if q.newest != nil {
		q.newest.newer = sub
	} else {
		q.oldest = sub
		s.inUse |= 1 << i
	}
	q.newest = sub
}

func (s *shard) unlink(sub *subject) {
	i := class(sub.keep)
	q := &s.queues[i]
	if sub.newer != nil {
		sub.newer.older = sub.older
	} else {
		q.newest = sub.older
	}
	if sub.older != nil {
		sub.older.newer = sub.newer
	} else {
		q.oldest = sub.newer
	}
	if q.newest == nil {
		s.inUse &^= 1 << i
	}
	sub.newer, sub.older = nil, nil
}
