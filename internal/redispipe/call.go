package redispipe

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Call is one EVALSHA, or one entry of a Batch. Arguments must not change, even after the call
// has returned.
type Call struct {
	Script *Script
	Keys   []string // at least one; on a Cluster all in one slot
	Args   []any    // strings and numbers

	Batch *Batch // instead of the above
	Key   string
	N     int64
}

// Reply is what a call got. It is shared with other calls of its Batch and must not be
// changed.
type Reply struct {
	Values []any   // of a script made by NewScript
	Ints   []int64 // of one made by NewIntScript; of a Batch, those of the call's key

	// Of a Batch: the integer for all calls, and which of the equal calls this one is.
	Common int64
	Index  int
}

// call is a call in the queue or in flight, and the place where its caller waits.
type call struct {
	Call
	ctx      context.Context
	deadline time.Time

	state atomic.Int32
	done  chan struct{} // has an element once the call has its outcome
	timer *time.Timer   // of the deadline
	reply Reply
	err   error

	// How it is sent; for the goroutine that makes its round trip.
	next      *call // the next equal call of its Batch
	last      *call // of the first one: the last one
	source    bool  // by EVAL: Redis does not know the script
	asking    bool  // after ASKING
	redirects int
}

// The states of a call.
const (
	waiting int32 = iota
	sent
	finished
)

var calls = sync.Pool{New: func() any {
	c := &call{done: make(chan struct{}, 1), timer: time.NewTimer(math.MaxInt64)}
	c.timer.Stop()
	return c
}}

// newCall returns a call whose deadline is the earlier of ctx's and this one.
func newCall(ctx context.Context, deadline time.Time, what Call) *call {
	c := calls.Get().(*call)
	c.Call, c.ctx, c.deadline = what, ctx, deadline
	if d, ok := ctx.Deadline(); ok && d.Before(c.deadline) {
		c.deadline = d
	}
	return c
}

// firstKey returns the key that decides which node the call is for.
func (c *call) firstKey() string {
	if c.Batch != nil {
		return c.Key
	}
	return c.Keys[0]
}

// finish gives the call its outcome, unless it has one. Its caller may use it again from then
// on.
func (c *call) finish(r Reply, err error) {
	if c.state.Swap(finished) != finished {
		c.reply, c.err = r, err
		c.done <- struct{}{}
	}
}

// leave gives the call an outcome without a reply, unless it has one. It is for the call's caller.
func (c *call) leave(err error) {
	switch was := c.state.Swap(finished); {
	case was == finished:
		<-c.done // which may be about to come
	case err != nil:
		c.err = err
	case was == waiting:
		c.err = ErrNotSent
	default:
		c.err = ErrNoReply
	}
}

// wait returns when the call has its outcome, which its deadline and the end of its context
// give it, too.
func (c *call) wait() {
	select {
	case <-c.done:
		return
	default:
	}
	c.timer.Reset(time.Until(c.deadline))
	defer c.timer.Stop()
	select {
	case <-c.done:
	case <-c.timer.C:
		c.leave(nil)
	case <-c.ctx.Done():
		c.leave(context.Cause(c.ctx))
	}
}

// outcome returns what wait has waited for, and lets the call be used again unless a round trip
// that goes on without it may refer to it.
func (c *call) outcome() (Reply, error) {
	r, err := c.reply, c.err
	switch {
	case err == nil:
		*c = call{done: c.done, timer: c.timer}
		calls.Put(c)
	case (errors.Is(err, ErrNotSent) || errors.Is(err, ErrNoReply)) && c.left():
		err = context.Cause(c.ctx)
	}
	return r, err
}

// left reports whether the call's context has ended. If its deadline was the call's, the
// connection's, which is the same, may have come a little before.
func (c *call) left() bool {
	if d, ok := c.ctx.Deadline(); ok && !d.After(c.deadline) && !time.Now().Before(d) {
		select {
		case <-c.ctx.Done():
		case <-time.After(100 * time.Millisecond): // for contexts that have a deadline and no timer
		}
	}
	return c.ctx.Err() != nil
}
