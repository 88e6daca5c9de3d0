package memstore

import (
	"math"
	"sort"
)

// events is a log's ring. Event 0 is the oldest.
type events struct {
	state
	head, count, width, room int
}

func eventsOf(s state) events {
	l := events{state: s, head: int(s.words[logHead]), count: int(s.words[logCount]), width: int(s.words[logWidth])}
	l.room = (len(s.words) - logEvents) / l.width
	return l
}

// timeOfNew returns the time of the event of a charge.
func (l *events) timeOfNew(now, prepaid int64) int64 {
	at := now + prepaid
	if l.count > 0 {
		at = max(at, l.timeOf(l.count-1))
	}
	return at
}

// wordsOf returns the words of event i.
func (l *events) wordsOf(i int) []uint32 {
	if i += l.head; i >= l.room {
		i -= l.room
	}
	from := logEvents + i*l.width
	return l.words[from : from+l.width]
}

// timeOf returns the time of event i.
func (l *events) timeOf(i int) int64 {
	w := l.wordsOf(i)
	switch l.width {
	case 2:
		return l.b + int64(w[0])
	case 3:
		return l.b + int64(uint64(w[0])|uint64(w[1]&0xffff)<<32)
	}
	return l.b + int64(get64(w))
}

// unitsThrough returns the sum of the units up to and including event i.
func (l *events) unitsThrough(i int) int64 {
	w := l.wordsOf(i)
	switch l.width {
	case 2:
		return int64(w[1])
	case 3:
		return int64(uint64(w[1]>>16) | uint64(w[2])<<16)
	}
	return int64(get64(w[2:]))
}

func (l *events) set(i int, at, sum int64) {
	w, at64, sum64 := l.wordsOf(i), uint64(at-l.b), uint64(sum)
	switch l.width {
	case 2:
		w[0], w[1] = uint32(at64), uint32(sum64)
	case 3:
		w[0], w[1], w[2] = uint32(at64), uint32(at64>>32)|uint32(sum64)<<16, uint32(sum64>>16)
	default:
		put64(w, at64)
		put64(w[2:], sum64)
	}
}

// unitsBefore returns the units charged before event i.
func (l *events) unitsBefore(i int) int64 {
	if i == 0 {
		return int64(get64(l.words[logFloor:]))
	}
	return l.unitsThrough(i - 1)
}

func (l *events) total() int64 { return l.unitsBefore(l.count) }

// firstAfter returns the number of the first event after a time, or the number of events if there is none.
func (l *events) firstAfter(at int64) int {
	if l.count == 0 || l.timeOf(0) > at {
		return 0
	}
	return sort.Search(l.count, func(i int) bool { return l.timeOf(i) > at })
}

// unitsSince returns the units charged after a time.
func (l *events) unitsSince(at int64) int64 { return l.total() - l.unitsBefore(l.firstAfter(at)) }

// timeReached returns the time of the first event whose sum is at least n.
func (l *events) timeReached(n int64) int64 {
	return l.timeOf(sort.Search(l.count-1, func(i int) bool { return l.unitsThrough(i) >= n }))
}

// dropOldest drops the first n events.
func (l *events) dropOldest(n int) {
	if n <= 0 {
		return
	}
	l.setFloor(l.unitsBefore(n))
	l.head = (l.head + n) % l.room
	l.words[logHead] = uint32(l.head)
	l.setCount(l.count - n)
}

func (l *events) setFloor(sum int64) { put64(l.words[logFloor:], uint64(sum)) }

func (l *events) setCount(n int) {
	l.count = n
	l.words[logCount] = uint32(n)
}

// rebase reduces all times and sums by those of the first event.
func (l *events) rebase() {
	base, floor := l.timeOf(0), l.unitsBefore(0)
	for i := range l.count {
		at, sum := l.timeOf(i)-(base-l.b), l.unitsThrough(i)-floor
		l.set(i, at, sum)
	}
	l.b = base
	l.setFloor(0)
}

// widthFor returns the number of words that an event needs for numbers up to n.
func widthFor(n int64) int {
	width := 2
	for n > maxOfWidth(width) {
		width++
	}
	return width
}

// maxOfWidth returns the largest number that an event of this width can hold.
func maxOfWidth(width int) int64 {
	if width == 4 {
		return math.MaxInt64
	}
	return 1<<(16*width) - 1
}
