package storetest

import (
	"sync"
	"time"
)

// Clock is the time that a store under test reads.
type Clock interface {
	Now() time.Time
	// Advance moves the time on, or back if d is negative.
	Advance(d time.Duration)
}

// ManualClock is a [Clock] that stands still until it is moved. It is safe for
// concurrent use.
type ManualClock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that shows now.
func NewClock(now time.Time) *ManualClock { return &ManualClock{now: now} }

// Now returns the time that the clock shows.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
