package faults

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// checkDenied takes 8 of 10 units, then 5, which are too many, and then 1.
func checkDenied(c *client, _ func() *client) (string, int) {
	c.limit(10, time.Hour)
	if !c.decide(8).Allowed || c.decide(5).Allowed {
		c.err = errors.Join(c.err, errors.New("does not keep a limit of 10"))
	}
	return yes(!c.decide(1).Allowed), 0
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// checkRemaining compares Remaining with the truth after each of three takes.
func checkRemaining(c *client, _ func() *client) (string, int) {
	wrong := 0
	for limit := 1; limit <= 1000; limit++ {
		c.limit(limit, time.Minute)
		if !c.remainsRight(limit) {
			wrong++
		}
	}
	switch {
	case wrong == 0:
		return "never", wrong
	case wrong < 250:
		return "sometimes", wrong
	case wrong <= 750:
		return "about half", wrong
	}
	return "mostly", wrong
}

// remainsRight takes three units. It reports whether Remaining is right each time, although units may have come back.
func (c *client) remainsRight(limit int) bool {
	began := time.Now()
	for used := 1; used <= min(limit, 3); used++ {
		d := c.decide(1)
		back := int(time.Since(began) * time.Duration(limit) / time.Minute)
		if !d.Allowed || d.Remaining < limit-used || d.Remaining > limit-used+back {
			return false
		}
	}
	return true
}

// checkHotKey counts the calls that fail.
func checkHotKey(c *client, _ func() *client) (string, int) {
	const callers, calls = 64, 50
	c.limit(1_000_000, time.Hour)
	if c.err != nil {
		return "", 0
	}
	var failed atomic.Int64
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for range calls {
				if d, err := c.take(c.ctx, c.key, 1); err != nil || !d.Allowed {
					failed.Add(1)
				}
			}
		})
	}
	running.Wait()
	switch n := int(failed.Load()); {
	case n == 0:
		return "none", n
	case n < callers*calls/10:
		return "some", n
	default:
		return "many", n
	}
}

// checkInstances counts the units that many clients get together. Each asks until it is denied, whatever fails before.
func checkInstances(c *client, open func() *client) (string, int) {
	const instances, limit = 32, 100
	var admitted atomic.Int64
	var running sync.WaitGroup
	c.limit(limit, 24*time.Hour)
	for range instances {
		o := open()
		o.limit(limit, 24*time.Hour)
		o.key = c.key
		running.Go(func() {
			for try := 0; ; try++ {
				admitted.Add(int64(o.takeAll()))
				if o.err == nil || o.take == nil || errors.Is(o.err, errEndless) || try > 10_000 {
					return
				}
				o.err = nil
			}
		})
	}
	running.Wait()
	n := int(admitted.Load())
	switch {
	case n > limit:
		return fmt.Sprint("more than ", limit), n
	case n < limit:
		return fmt.Sprint("less than ", limit), n
	}
	return fmt.Sprint(limit), n
}

const (
	windowLimit = 100
	window      = 10 * time.Second
	halfSecond  = 500 * time.Millisecond
	pause       = 20 * time.Millisecond // between two attempts
)

// beginWindow waits for a window, makes a limiter, and returns the end of the window. The window begins at a multiple
// of its length, because some programs count in such windows, and others from the first take.
func (c *client) beginWindow() time.Time {
	begin := time.Now().Truncate(window).Add(window)
	c.sleepUntil(begin)
	c.limit(windowLimit, window)
	return begin.Add(window)
}

// checkEdge begins a window with one unit, and counts the units in the second around its end.
func checkEdge(c *client, _ func() *client) (string, int) {
	end := c.beginWindow()
	c.decide(1)
	c.sleepUntil(end.Add(-halfSecond))
	n := c.takeAll()
	if c.err == nil && time.Now().After(end) {
		c.err = errors.New("disturbed: 100 takes need more than half a second")
	}
	for until := end.Add(halfSecond); c.err == nil && time.Now().Before(until); c.sleepUntil(time.Now().Add(pause)) {
		if more := c.takeAll(); time.Now().Before(until) {
			n += more
		}
	}
	if n <= windowLimit {
		return fmt.Sprint("at most ", windowLimit), n
	}
	return fmt.Sprint("about ", (n+5)/10*10), n
}

// checkReturn takes all units at once, and measures when all have come back, as far as a denial shows it.
func checkReturn(c *client, _ func() *client) (string, int) {
	c.beginWindow()
	if n := c.takeAll(); n < windowLimit {
		c.err = errors.Join(c.err, fmt.Errorf("admits only %d of %d", n, windowLimit))
	}
	due := time.Now().Add(window)
	c.sleepUntil(due)
	var late time.Duration
	for back := 0; c.err == nil; c.sleepUntil(time.Now().Add(pause)) {
		now := time.Since(due)
		if back += c.takeAll(); back >= windowLimit {
			break
		}
		if late = now; late > 2*window {
			c.err = fmt.Errorf("only %d of %d units come back", back, windowLimit)
		}
	}
	if late < window/200 {
		return "on time", int(late.Milliseconds())
	}
	step := window / 20
	return fmt.Sprintf("up to %d %% late", 5*((late+step-1)/step)), int(late.Milliseconds())
}
