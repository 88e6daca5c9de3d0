package redispipe

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Call is one EVALSHA, or one entry of a [Batch]. Its arguments must not change, even after the
// call has returned.
type Call struct {
	Script *Script
	Keys   []string // at least one; on a Cluster all in one slot
	Args   []any    // strings and numbers

	Batch *Batch // instead of the above
	Key   string
	N     int64
}

// Reply is the reply to a call. Calls of a [Batch] share it; it must not be changed.
type Reply struct {
	Values []any   // of a script made by NewScript
	Ints   []int64 // of one made by NewIntScript; of a Batch, those of the call's key

	// Of a Batch: the integer for all calls, and the call's number among the equal calls.
	Common int64
	Index  int
}

// call is a call in the queue or in flight. Its caller waits for it.
type call struct {
	Call
	ctx      context.Context
	deadline time.Time
	first    *queue // of the node that the call was for, before any redirection

	state atomic.Int32
	done  chan struct{} // has an element once a round trip has finished the call
	timer *time.Timer   // of the deadline
	reply Reply
	err   error

	// For the goroutine of its round trip.
	next      *call // the next equal call of its Batch
	last      *call // of the first one: the last one
	source    bool  // sent by EVAL: Redis does not know the script
	asking    bool  // sent after ASKING
	redirects int
}

// The states of a call.
const (
	queued int32 = iota // maybe in a round trip, but nothing was written for it
	sent                // go-redis writes it, or has written it
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

// firstKey returns the key that determines the call's node.
func (c *call) firstKey() string {
	if c.Batch != nil {
		return c.Key
	}
	return c.Keys[0]
}

// script returns the script that the call runs.
func (c *call) script() *Script {
	if c.Batch != nil {
		return c.Batch.Script
	}
	return c.Script
}

// markSent marks a call as sent. It returns false if the call is finished.
func (c *call) markSent() bool {
	return c.state.CompareAndSwap(queued, sent) || c.state.Load() == sent
}

// finish sets the reply or the error of a call, unless it is finished. The caller may reuse the
// call from then on.
func (c *call) finish(r Reply, err error) {
	if c.state.Swap(finished) != finished {
		c.reply, c.err = r, err
		c.done <- struct{}{}
	}
}

// fail finishes a call of q that has no reply for a reason, unless it is finished.
func (c *call) fail(q *queue, reason error) {
	if was := c.state.Swap(finished); was != finished {
		c.err = q.callError(was, reason)
		c.done <- struct{}{}
	}
}

// abandon finishes a call without a reply, unless it is finished. A nil error means the one of a
// deadline. Only the call's caller calls it.
func (c *call) abandon(err error) {
	switch was := c.state.Swap(finished); {
	case was == finished:
		<-c.done // which may be about to come
	case err != nil:
		c.err = err
	default:
		c.err = c.first.lateError(was)
	}
}

// wait returns when the call is finished, at its deadline or the end of its context at the latest.
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
		c.abandon(nil)
	case <-c.ctx.Done():
		c.abandon(context.Cause(c.ctx))
	}
}

// result returns the reply and the error of a finished call. It recycles the call, unless a round
// trip may still refer to it.
func (c *call) result() (Reply, error) {
	r, err := c.reply, c.err
	switch {
	case err == nil:
		*c = call{done: c.done, timer: c.timer}
		calls.Put(c)
	case (errors.Is(err, ErrNotSent) || errors.Is(err, ErrNoReply)) && c.contextEnded():
		err = context.Cause(c.ctx)
	}
	return r, err
}

// contextEnded reports whether the call's context has ended. If its deadline is the call's, the
// connection's may have passed a moment before it.
func (c *call) contextEnded() bool {
	if d, ok := c.ctx.Deadline(); ok && !d.After(c.deadline) && !time.Now().Before(d) {
		select {
		case <-c.ctx.Done():
		case <-time.After(100 * time.Millisecond): // a context may have a deadline and no timer
		}
	}
	return c.ctx.Err() != nil
}
