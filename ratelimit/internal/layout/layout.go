// Package layout defines the parameters of a rate-limit rule. Package ratelimit creates them, and stores read them through
// package storage.
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

// MaxCount is the largest count and the largest limit. A float64, and therefore a number in Lua, represents every integer up
// to MaxCount exactly.
const MaxCount = 1 << 53

// Micros returns d in microseconds, rounded up. d must not be negative.
func Micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// Duration converts microseconds to a duration, and limits it to 0 to [option.MaxDuration]. Waiting times may be longer or
// negative if a clock goes back.
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

// String returns the algorithm's name in lower case, or "" for the zero Algorithm.
func (a Algorithm) String() string {
	return [...]string{Buckets: "buckets", Log: "log", Window: "window", GCRA: "gcra"}[a]
}

// Layout holds a rule's parameters. Durations are in microseconds. A field that the algorithm does not use is 0.
type Layout struct {
	Algorithm Algorithm
	// Stream reports whether Redis keeps a log as a stream.
	Stream bool
	// Concurrent reports whether a log holds requests in progress. Their units come back when the requests end, and not
	// only after a Per.
	Concurrent bool
	// Window is the number of buckets to which the limit applies, and Buckets the number of buckets that can be counted.
	// Neither number includes the newest bucket.
	Window, Buckets int32
	// Period is the period of a window in the calendar of Location. If it is 0, a window begins with its first charge.
	Period   Period
	Location *time.Location
	// Limit is 0 if the rule only counts. Burst is the largest n that can pass.
	Limit, Burst                int64
	Per, Interval, Span, Expiry int64
	// BlockAfter is the number of denials that start a block, or 0 without a block. BlockFor is the block's duration.
	BlockAfter, BlockFor int64
	// Name distinguishes the rule from other rules of its policy. Named reports whether WithName has set the name. Rules
	// with different names that WithName has set have different counters.
	Name  string
	Named bool
	// OwnBurst reports whether WithBurst has set the burst. Otherwise, the burst is the limit.
	OwnBurst bool
	// Err is the error of an invalid rule: the name of a field, a space, and the reason.
	Err string
	// ID identifies the rule's counter among the counters of a key. It is a hash.
	ID uint64
}

var (
	known   = map[Layout]weak.Pointer[Layout]{} // the layouts that are in use
	knownMu sync.Mutex
)

// Intern returns a pointer to a layout that equals l. Equal layouts have the same pointer while it is in use. The caller must
// not change the layout.
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

// forget removes a layout that is no longer in use, unless it was added again.
func forget(l Layout) {
	knownMu.Lock()
	defer knownMu.Unlock()
	if known[l].Value() == nil {
		delete(known, l)
	}
}

// SetID sets the ID, which depends on some of the other fields.
func (l *Layout) SetID() {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %t %t %d %v %d %d %d %t %s", l.Algorithm, l.Stream, l.Concurrent, l.Period, l.Location, l.Per, l.Interval, l.Span, l.Named, l.Name)
	l.ID = h.Sum64()
}

// Wait returns the duration of a wait for units in microseconds. If the units may come back at any moment, the wait is at most
// a second.
func (l *Layout) Wait(micros int64) time.Duration {
	if l.Concurrent {
		micros = min(micros, time.Second.Microseconds())
	}
	return Duration(micros)
}
