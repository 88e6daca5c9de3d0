package algorithms

import (
	"context"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
)

// tick is the shortest time that the rules distinguish.
const tick = time.Microsecond

// charge is units that were let through at a moment since the client began.
type charge struct {
	at time.Duration
	n  int64
}

// client is the only one of a store of its own, whose clock it moves. It keeps the first
// error and does nothing after it.
type client struct {
	rules   *ratelimit.Limiter
	now     time.Duration
	charges []charge
	err     error
}

// newClient returns a client that begins at a time after a whole minute.
func newClient(s subject, phase time.Duration) *client {
	c := &client{}
	begin := time.Unix(1_700_000_040, 0).Add(phase)
	store, err := memstore.New(memstore.Options{
		MaxKeys: len(s.rules),
		Clock:   func() time.Time { return begin.Add(c.now) },
	})
	if err != nil {
		c.err = err
		return c
	}
	c.rules, c.err = ratelimit.NewLimiter(store, s.rules...)
	return c
}

// peek returns what a take of one would get.
func (c *client) peek() (v ratelimit.Result) {
	if c.err == nil {
		v, c.err = c.rules.Peek(context.Background(), "k", 1)
	}
	return v
}

// take tries to take n units; after a success, the result describes what comes next.
func (c *client) take(n int64) (v ratelimit.Result) {
	if c.err != nil {
		return v
	}
	if v, c.err = c.rules.Take(context.Background(), "k", n); v.Allowed {
		c.charges = append(c.charges, charge{c.now, n})
	}
	return v
}

// takeAllFor takes all there is, and what comes within d as it comes.
func (c *client) takeAllFor(d time.Duration) {
	end, v := c.now+d, c.peek()
	for c.err == nil && c.now+v.RetryAfter <= end {
		c.now += v.RetryAfter
		v = c.take(max(1, v.Remaining))
	}
}

// maxUnitsIn returns the most units of any window of length w.
func maxUnitsIn(charges []charge, w time.Duration) int64 {
	var most, sum int64
	first := 0
	for _, c := range charges {
		sum += c.n
		for ; charges[first].at <= c.at-w; first++ {
			sum -= charges[first].n
		}
		most = max(most, sum)
	}
	return most
}
