package memstore

import (
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/internal/layout"
)

// logAlgorithm stores every charge as an event; charges of the same microsecond are one event. Its state is
//
//	b      base: the times of the events are relative to it
//	words  generation of the counter, two words
//	       floor: the units charged before the first event, two words
//	       head:  the place of the first event in the ring
//	       count: the number of events
//	       width: the words of an event
//	       ring:  the events; each is a time and the sum of the units up to and including it
//
// The time and the sum each take half of an event's words: 32, 48 or 64 bits. Both only increase, so binary searches find
// the units of a window and the time at which units leave it. Only differences of times and sums matter: before a number
// no longer fits, all numbers are reduced by those of the first event.
//
// Events are in order of time. If the newest event is later than the clock, because the clock has gone back or the event
// was prepaid, a new charge gets the time of the newest event. The window always ends at the clock's time.
type logAlgorithm struct{}

// These are the places of a log's words.
const (
	logFloor  = 2
	logHead   = 4
	logCount  = 5
	logWidth  = 6
	logEvents = 7
)

// minEvents is the number of events for which a new log has room.
const minEvents = 4

func (p *logAlgorithm) wordsNeeded(s state, r *rule, n, now, prepaid int64) int {
	if s.words == nil {
		return logEvents + minEvents*widthFor(max(r.Per+prepaid, n))
	}
	room, width := p.neededShape(s, r, n, now, prepaid)
	return logEvents + room*width
}

// neededShape drops the events that have left the window. It returns the number and the width of the events for which the
// log must have room before n units are charged. The room grows by an eighth, and shrinks when two thirds of it are empty.
func (*logAlgorithm) neededShape(s state, r *rule, n, now, prepaid int64) (room, width int) {
	l := eventsOf(s)
	at := l.timeOfNew(now, prepaid)
	l.dropOldest(l.firstAfter(now - r.Per))
	events := l.count
	if l.count == 0 || at != l.timeOf(l.count-1) {
		events++
	}
	width = max(l.width, widthFor(max(r.Per+at-now, l.unitsSince(now-r.Per)+n)))
	if events <= l.room && l.room <= 3*events+minEvents {
		return l.room, width
	}
	for room = minEvents; room < events; {
		room += max(2, room/8)
	}
	return room, width
}

func (*logAlgorithm) begin(s state, r *rule, n, now, generation, prepaid int64) {
	s.b = now
	put64(s.words, uint64(generation))
	s.words[logWidth] = uint32(widthFor(max(r.Per+prepaid, n)))
}

func (p *logAlgorithm) reshape(s state, r *rule, to []uint32, n, now, prepaid int64) {
	_, width := p.neededShape(s, r, n, now, prepaid)
	old := eventsOf(s)
	copy(to, s.words[:logEvents])
	to[logHead], to[logWidth] = 0, uint32(width)
	l := eventsOf(state{s.entry, to})
	for i := range old.count {
		l.set(i, old.timeOf(i), old.unitsThrough(i))
	}
}

func (*logAlgorithm) passes(s state, r *rule, n, now int64) (allowed, fit bool) {
	l := eventsOf(s)
	used := l.unitsSince(now - r.Per)
	return n <= r.Limit-used, n <= layout.MaxCount-used
}

func (*logAlgorithm) quota(s state, r *rule, n, now int64) (q quota) {
	l := eventsOf(s)
	used, total := l.unitsSince(now-r.Per), l.total()
	q.remaining = max(0, r.Limit-used)
	if n > q.remaining {
		q.retry = l.timeReached(total+n-r.Limit) + r.Per - now
	}
	if used > 0 {
		q.reset = l.timeReached(total) + r.Per - now
	}
	return q
}

func (*logAlgorithm) charge(s state, r *rule, n, now, _, prepaid int64) ratelimit.Receipt {
	l := eventsOf(s)
	at := l.timeOfNew(now, prepaid)
	l.dropOldest(l.firstAfter(now - r.Per))
	if l.count == 0 {
		s.b = at
		l.setFloor(0)
	} else if most := maxOfWidth(l.width); at-s.b > most || l.total()+n > most {
		l.rebase()
	}
	total := l.total() + n
	if l.count == 0 || l.timeOf(l.count-1) != at {
		l.setCount(l.count + 1)
	}
	l.set(l.count-1, at, total)
	s.until = at + r.Per
	return ratelimit.Receipt{N: n, At: at, Generation: int64(get64(s.words))}
}

func (*logAlgorithm) count(s state, _ *rule, interval, now int64) int64 {
	l := eventsOf(s)
	return l.unitsSince(now - interval)
}

// refund subtracts the units from the sums of their event and all later events. It removes the event if it has no more units.
func (*logAlgorithm) refund(s state, r *rule, c ratelimit.Receipt, now, _ int64) bool {
	l := eventsOf(s)
	if c.N <= 0 || c.Generation != int64(get64(s.words)) || c.At <= now-r.Per {
		return false
	}
	i := l.firstAfter(c.At - 1)
	if i == l.count || l.timeOf(i) != c.At || l.unitsThrough(i)-l.unitsBefore(i) < c.N {
		return false
	}
	removed := 0
	if l.unitsThrough(i)-l.unitsBefore(i) == c.N {
		removed = 1
	}
	for ; i+removed < l.count; i++ {
		l.set(i, l.timeOf(i+removed), l.unitsThrough(i+removed)-c.N)
	}
	l.setCount(l.count - removed)
	if s.until = now; l.count > 0 {
		s.until = l.timeOf(l.count-1) + r.Per
	}
	return true
}
