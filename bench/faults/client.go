package faults

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/bench/decisions"
)

// client takes units of one key from a limiter. It keeps the first error and does nothing after it.
type client struct {
	ctx  context.Context
	peer decisions.Client
	take decisions.Take
	key  string
	err  error
}

// programs returns a program for each contender. check may open more clients of the contender.
func programs(list []decisions.Contender, check func(c *client, open func() *client) (seen string, n int)) []program {
	var out []program
	for _, contender := range list {
		out = append(out, program{contender.Name, func(ctx context.Context, addr string) (string, int, error) {
			var clients []*client
			open := func() *client {
				c := &client{ctx: ctx}
				c.peer, c.err = contender.Open(addr)
				clients = append(clients, c)
				return c
			}
			seen, n := check(open(), open)
			var errs []error
			for _, c := range clients {
				errs = append(errs, c.err, c.close())
			}
			return seen, n, errors.Join(errs...)
		}})
	}
	return out
}

func (c *client) close() error {
	if c.peer.Close == nil {
		return nil
	}
	return c.peer.Close()
}

var keys atomic.Int64

// limit makes a limiter, and chooses a key that nothing was charged to.
func (c *client) limit(limit int, per time.Duration) {
	if c.err == nil {
		c.key = fmt.Sprint("faults-", keys.Add(1))
		c.take, c.err = c.peer.Limiter(decisions.Quota{Limit: limit, Per: per})
	}
}

// decide takes n units.
func (c *client) decide(n int) (d decisions.Decision) {
	if c.err == nil {
		d, c.err = c.take(c.ctx, c.key, n)
	}
	return d
}

var errEndless = errors.New("nothing is denied")

// takeAll takes single units until one is denied. It returns the number of units that were allowed.
func (c *client) takeAll() (n int) {
	for c.decide(1).Allowed {
		if n++; n > 10_000 {
			c.err = errEndless
		}
	}
	return n
}

func (c *client) sleepUntil(t time.Time) {
	if c.err != nil {
		return
	}
	select {
	case <-time.After(time.Until(t)):
	case <-c.ctx.Done():
		c.err = context.Cause(c.ctx)
	}
}
