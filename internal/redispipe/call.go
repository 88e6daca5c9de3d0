package redispipe

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Call is an EVALSHA or an entry of a [Batch]. The caller must not change its arguments, even after the call has
// returned.
type Call struct {
	Script *Script
	Keys   []string // at least one; on a Cluster, all in the same slot
	Args   []any    // strings and numbers

	Batch *Batch // replaces Script, Keys and Args
	Key   string // for a Batch only
	N     int64  // for a Batch only
}

// Reply is the reply to a call. It must not be changed, because equal calls of a [Batch] share it.
type Reply struct {
	Values []any   // from a script made with NewScript
	Ints   []int64 // from a script made with NewIntScript; for a Batch, only the integers for the call's key

	Common int64 // for a Batch, the integer that all calls share
	Index  int   // for a Batch, the call's number among equal calls
}

// call is a call in the queue or in flight. Its caller waits until it is finished.
type call struct {
	Call
	ctx      context.Context
	deadline time.Time
	first    *queue // the call's queue before any redirection

	state atomic.Int32
	done  chan struct{} // receives an element when a round trip finishes the call
	timer *time.Timer   // fires at the deadline
	reply Reply
	err   error

	// Only the goroutine of the round trip uses these fields.
	next      *call // the next equal call of its Batch
	last      *call // in the first of equal calls: the last one
	source    bool  // sent with EVAL, because Redis does not know the script
	asking    bool  // sent after ASKING
	redirects int
}

// The states of a call.
const (
	queued int32 = iota // perhaps in a round trip, but not written yet
	sent                // go-redis writes it or has written it
	finished
)

var calls = sync.Pool{New: func() any {
	c := &call{done: make(chan struct{}, 1), timer: time.NewTimer(math.MaxInt64)}
	c.timer.Stop()
	return c
}}

// newCall returns a call. Its deadline is the earlier of deadline and the deadline of ctx.
func newCall(ctx context.Context, deadline time.Time, what Call) *call {
	c := calls.Get().(*call)
	c.Call, c.ctx, c.deadline = what, ctx, deadline
	if d, ok := ctx.Deadline(); ok && d.Before(c.deadline) {
		c.deadline = d
	}
	return c
}

// firstKey returns the first key of the call, which determines the call's node.
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

// markSent marks a call as sent. It returns false if the call is already finished.
func (c *call) markSent() bool {
	return c.state.CompareAndSwap(queued, sent) || c.state.Load() == sent
}

// finish finishes a call with a reply or an error, unless the call is already finished. Afterwards, the caller may reuse
// the call.
func (c *call) finish(r Reply, err error) {
	if c.state.Swap(finished) != finished {
		c.reply, c.err = r, err
		c.done <- struct{}{}
	}
}

// fail finishes a call without a reply from q's node, unless the call is already finished. reason says why there is no
// reply, or is an error reply.
func (c *call) fail(q *queue, reason error) {
	if was := c.state.Swap(finished); was != finished {
		c.err = q.callError(was, reason)
		c.done <- struct{}{}
	}
}

// abandon finishes a call without a reply, unless the call is already finished. If err is nil, the call gets the error for
// a missed deadline. Only the goroutine that waits for the call may use abandon.
func (c *call) abandon(err error) {
	switch was := c.state.Swap(finished); {
	case was == finished:
		<-c.done // finish may still be about to send it
	case err != nil:
		c.err = err
	default:
		c.err = c.first.lateError(was)
	}
}

// wait waits until the call is finished. It abandons the call at its deadline or at the end of its context.
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

// result returns the reply and the error of a finished call. It recycles the call, unless a round trip may still use it.
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

// contextEnded reports whether the call's context has ended. If the context has the same deadline as the call, the
// connection can time out a moment before the context ends. In this case, contextEnded waits for the context.
func (c *call) contextEnded() bool {
	if d, ok := c.ctx.Deadline(); ok && !d.After(c.deadline) && !time.Now().Before(d) {
		select {
		case <-c.ctx.Done():
		case <-time.After(100 * time.Millisecond): // a custom context may have a deadline but no timer
		}
	}
	return c.ctx.Err() != nil
}
