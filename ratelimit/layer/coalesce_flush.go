package layer

import (
	"context"
	"slices"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// flush is the takes of a lane that wait for one call.
type flush struct {
	lazy.Flight
	c    *Coalesce
	lane *lane
	ctx  context.Context // the call's
	op   ratelimit.Op    // what all have in common

	// Guarded by the list's mutex until the call has begun. Then they don't change.
	units   []int64 // of each take, in the order in which they came; 0: it has left
	ranks   []int   // of each take, which it is of those that have not left; nil: none has
	waiting int     // how many have not left

	// Guarded by the list's mutex.
	begun bool
	ended bool

	// Written by the call, before the flight is released.
	series   ratelimit.Series
	results  []ratelimit.Result // in place of the series, if not nil
	err      error
	panicked *lazy.PanicError
}

// newFlush returns an empty flush of a lane, whose call is under ctx.
func newFlush(ctx context.Context, c *Coalesce, l *lane) *flush {
	f := &flush{c: c, lane: l, ctx: ctx, op: l.op, units: make([]int64, 0, max(1, l.size))}
	f.Init(ctx, nil, f)
	return f
}

// add returns the place of one more take.
func (f *flush) add(n int64) int {
	f.units = append(f.units, n)
	f.waiting++
	return len(f.units) - 1
}

// leave takes a take out whose caller doesn't wait any longer, and tells whether it could:
// the outcome may be there.
func (f *flush) leave(place int) bool {
	f.lane.list.mu.Lock()
	defer f.lane.list.mu.Unlock()
	if f.begun {
		return !f.ended
	}
	f.units[place] = 0
	if f.waiting--; f.waiting == 0 {
		f.lane.queue = nil
	}
	return true
}

// depart begins the call, for those who have not left. The caller holds the list's mutex.
func (f *flush) depart() {
	f.begun = true
	if f.waiting == len(f.units) {
		return
	}
	f.ranks = make([]int, len(f.units))
	stayed := f.units[:0]
	for i, n := range f.units {
		f.ranks[i] = len(stayed)
		if n > 0 {
			stayed = append(stayed, n)
		}
	}
	f.units = stayed
}

// Name names the call in panics.
func (f *flush) Name() string { return "layer: coalesced takes of " + f.op.Rule.String() }

// Compute makes the call. It is under the flush's context and not that of its flight: to
// the store it's nobody's computation.
func (f *flush) Compute(context.Context) {
	op, times := f.op, len(f.units)
	op.N = f.units[0]
	switch {
	case times == 1:
		f.results = make([]ratelimit.Result, 1)
		f.results[0], f.err = f.c.one(f.ctx, op)
	case f.c.many != nil && !slices.ContainsFunc(f.units, func(n int64) bool { return n != op.N }):
		f.series, f.err = f.c.many.TakeMany(f.ctx, op, times)
	default:
		f.results, f.err = f.c.inner.Do(f.ctx, f.ops())
	}
}

// ops returns the takes one by one.
func (f *flush) ops() []ratelimit.Op {
	ops := make([]ratelimit.Op, len(f.units))
	for i, n := range f.units {
		ops[i] = f.op
		ops[i].N, ops[i].Apart = n, true
	}
	return ops
}

// Finish keeps the outcome from those who leave.
func (f *flush) Finish(abnormal error) {
	f.lane.list.mu.Lock()
	defer f.lane.list.mu.Unlock()
	f.ended = true
	if abnormal != nil {
		f.err = abnormal
		f.panicked, _ = abnormal.(*lazy.PanicError)
	}
}

// result returns what the take at a place came to, once the call has ended.
func (f *flush) result(place int) (ratelimit.Result, error) {
	if f.panicked != nil {
		f.panicked.Raise()
	}
	if f.ranks != nil {
		place = f.ranks[place]
	}
	switch {
	case f.err != nil:
		return ratelimit.Result{}, f.err
	case f.results != nil:
		return f.results[place], nil
	default:
		return f.series.Result(place), nil
	}
}
