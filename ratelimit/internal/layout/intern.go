package layout

import (
	"fmt"
	"hash/fnv"
	"runtime"
	"sync"
	"weak"
)

var (
	known   = map[Layout]weak.Pointer[Layout]{} // the layouts that something refers to
	knownMu sync.Mutex
)

// Intern returns a pointer to a layout that is equal to l. It returns the same pointer for equal
// layouts, as long as something refers to it. The layout must not be changed.
func Intern(l Layout) *Layout {
	knownMu.Lock()
	defer knownMu.Unlock()
	if p := known[l].Value(); p != nil {
		return p
	}
	added := new(l)
	known[l] = weak.Make(added)
	runtime.AddCleanup(added, forget, l)
	return added
}

// forget removes a layout that nothing refers to, unless it was added again.
func forget(l Layout) {
	knownMu.Lock()
	defer knownMu.Unlock()
	if known[l].Value() == nil {
		delete(known, l)
	}
}

// Known returns the number of layouts that are kept.
func Known() int {
	knownMu.Lock()
	defer knownMu.Unlock()
	return len(known)
}

// SetID sets the ID.
func (l *Layout) SetID() {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %t %d %d %d %t %s", l.Algorithm, l.Stream, l.Per, l.Interval, l.Span, l.Named, l.Name)
	l.ID = h.Sum64()
}

// SharesCounter reports whether a key has one counter for the rules of both layouts.
func (l *Layout) SharesCounter(other *Layout) bool {
	return l.counter() == other.counter()
}

// counter returns the fields that distinguish the counters of a key.
func (l *Layout) counter() Layout {
	return Layout{Algorithm: l.Algorithm, Stream: l.Stream, Per: l.Per, Interval: l.Interval, Span: l.Span, Named: l.Named, Name: l.Name}
}
