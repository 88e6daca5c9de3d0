// Package layout holds the numbers of a rate-limit rule, which package ratelimit makes and package storage shows to
// stores.
package layout

import (
	"fmt"
	"hash/fnv"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/lazyreq/lazyreq/internal/option"
)

// MaxCount is the largest count and the largest limit. A float64, and so a number in Lua, holds every
// integer up to it.
const MaxCount = 1 << 53

// Micros returns a duration, which is not negative, in microseconds, rounded up.
func Micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// Duration returns a number of microseconds as a duration from 0 to [option.MaxDuration]. Waits may be
// longer or negative if a clock goes back.
func Duration(micros int64) time.Duration {
	return time.Duration(min(max(0, micros), option.MaxDuration.Microseconds())) * time.Microsecond
}

// Algorithm is a way of counting. The zero Algorithm marks an invalid rule.
type Algorithm uint8

// The algorithms.
const (
	Buckets Algorithm = iota + 1
	Log
	Window
	GCRA
)

// String returns the algorithm's name in lower case, "" for the zero Algorithm.
func (a Algorithm) String() string {
	return [...]string{Buckets: "buckets", Log: "log", Window: "window", GCRA: "gcra"}[a]
}

// Layout holds a rule's numbers. Durations are in microseconds. A field that the algorithm does not use is 0.
type Layout struct {
	Algorithm Algorithm
	// Stream is set for a log that Redis keeps as a stream.
	Stream bool
	// Window and Buckets are numbers of buckets before the newest: the limit is over Window of them, and Buckets of
	// them can be counted.
	Window, Buckets int32
	// Limit is 0 if the rule only counts. Burst is the largest n that can pass.
	Limit, Burst                int64
	Per, Interval, Span, Expiry int64
	// BlockAfter is the number of denials that lead to a block, 0 without a block. BlockFor is its length.
	BlockAfter, BlockFor int64
	// Name distinguishes the rule from others of its policy. Named is set if it was chosen: then it also distinguishes
	// the counter.
	Name  string
	Named bool
	// OwnBurst is set if the burst was chosen, and does not follow the limit.
	OwnBurst bool
	// Err is the error of an invalid rule: a field and, after a space, the reason.
	Err string
	// ID is a hash of what distinguishes the rule's counter from a key's other counters.
	ID uint64
}

var (
	known   = map[Layout]weak.Pointer[Layout]{} // the layouts that something refers to
	knownMu sync.Mutex
)

// Intern returns a pointer to a layout that is equal to l. It returns the same pointer for equal layouts, as long as
// something refers to it. The layout must not be changed.
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

// SetID sets the ID.
func (l *Layout) SetID() {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %t %d %d %d %t %s", l.Algorithm, l.Stream, l.Per, l.Interval, l.Span, l.Named, l.Name)
	l.ID = h.Sum64()
}
