package layer

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// laneLists is how many lists the lanes are in: more than there are processors and, mostly,
// calls under way.
const laneLists = 512

// laneList has the lanes whose keys' hashes are alike. Only what is under way has one, so
// that a list is short.
type laneList struct {
	mu    sync.Mutex
	first *lane
	spare *lane    // the last one that ended
	_     [40]byte // a cache line of its own
}

// lane is where the takes of one rule and key are. It is in its list as long as there are
// any. Its fields are guarded by the list's mutex, but the first three don't change.
type lane struct {
	list *laneList
	hash uint64
	op   ratelimit.Op // the rule and the key

	next    *lane
	passing bool   // a take has gone past the queue
	flying  bool   // a call is under way, which the queue waits for
	queue   *flush // nil if nobody waits
	size    int    // how many the last flush had
}

// turn is what a take is to do: wait for a flush, give up, go past the queue, or, if all
// are zero, be the call that later ones wait for.
type turn struct {
	flush  *flush
	place  int // in the flush
	full   bool
	passes bool
}

// enter finds out what op is to do. In a scope, a take's call waits for all else that the
// scope's computations ask for at that moment. That may last, and it may be for one that
// waits in the queue here; so nobody ever waits for it.
func (c *Coalesce) enter(op *ratelimit.Op, scoped bool) (*lane, turn) {
	hash := maphash.String(c.seed, op.Key)
	list := &c.lanes[hash%laneLists]
	list.mu.Lock()
	defer list.mu.Unlock()
	l := list.lane(hash, op)
	switch {
	case !l.flying && scoped && !l.passing:
		l.passing = true
		return l, turn{passes: true}
	case !l.flying:
		l.flying = true
		return l, turn{}
	case l.queue == nil:
		l.queue = newFlush(context.Background(), c, l)
	case len(l.queue.units) == c.maxQueue:
		return l, turn{full: true}
	}
	return l, turn{flush: l.queue, place: l.queue.add(op.N)}
}

// lane returns the lane of the op's rule and key, which it adds if there is none.
func (s *laneList) lane(hash uint64, op *ratelimit.Op) *lane {
	for l := s.first; l != nil; l = l.next {
		if l.hash == hash && l.op.Key == op.Key && l.op.Rule == op.Rule {
			return l
		}
	}
	l := s.spare
	if l == nil {
		l = new(lane)
	}
	s.spare = nil
	*l = lane{list: s, hash: hash, op: *op, next: s.first}
	s.first = l
	return l
}

// passed ends a take that went past the queue.
func (c *Coalesce) passed(l *lane) {
	l.list.mu.Lock()
	defer l.list.mu.Unlock()
	l.passing = false
	l.leave()
}

// land ends a call of one, and lets those go that have queued meanwhile.
func (c *Coalesce) land(l *lane) {
	if f := l.takeOff(); f != nil {
		go c.fly(l, f)
	}
}

// takeOff returns those who have queued, or ends the flight.
func (l *lane) takeOff() *flush {
	l.list.mu.Lock()
	defer l.list.mu.Unlock()
	f := l.queue
	l.queue = nil
	if f == nil || !f.depart() {
		l.flying = false
		l.leave()
		return nil
	}
	l.size = len(f.units)
	return f
}

// leave takes a lane out of its list if nothing is under way any more. The caller holds the
// list's mutex, and doesn't touch the lane again.
func (l *lane) leave() {
	if l.flying || l.passing {
		return
	}
	at := &l.list.first
	for *at != l {
		at = &(*at).next
	}
	*at = l.next
	list := l.list
	*l = lane{}
	list.spare = l
}
