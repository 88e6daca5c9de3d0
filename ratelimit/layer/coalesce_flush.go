package layer

import (
	"context"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// flush is the takes of a lane that wait for one call.
type flush struct {
	lazy.Flight
	c    *Coalesce
	list *laneList
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
	parts    []part
	panicked *lazy.PanicError
	goexit   error
}

// part is what one of the flush's calls came to: that of the takes from from to before to.
type part struct {
	from, to int
	series   ratelimit.Series
	results  []ratelimit.Result // in place of the series, if not nil
	err      error
}

// newFlush returns an empty flush of a lane, whose call is under ctx.
func newFlush(ctx context.Context, c *Coalesce, l *lane) *flush {
	f := &flush{c: c, list: l.list, ctx: ctx, op: l.op, units: make([]int64, 0, max(1, l.size))}
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
	f.list.mu.Lock()
	defer f.list.mu.Unlock()
	if f.ended {
		return false
	}
	if f.begun {
		return true
	}
	f.units[place] = 0
	if f.waiting--; f.waiting == 0 {
		f.units = f.units[:0]
	}
	return true
}

// depart begins the call, unless everybody has left. The caller holds the list's mutex.
func (f *flush) depart() bool {
	f.begun = true
	if f.waiting == len(f.units) {
		return f.waiting > 0
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
	return f.waiting > 0
}

// Name names the call in panics.
func (f *flush) Name() string { return "layer: coalesced takes of " + f.op.Rule.String() }

// Compute makes the call, or several where that is faster: one for each run of equal takes.
// They are under the flush's context and not that of its flight: to the store it's nobody's
// computation.
func (f *flush) Compute(context.Context) {
	runs := 1
	for i, n := range f.units[1:] {
		if n != f.units[i] {
			runs++
		}
	}
	if f.c.many == nil || runs > 1 && runs*worthACall > len(f.units) {
		f.parts = []part{f.each()}
		return
	}
	f.parts = make([]part, 0, runs)
	for from := 0; from < len(f.units); {
		to := from + 1
		for to < len(f.units) && f.units[to] == f.units[from] {
			to++
		}
		f.parts = append(f.parts, f.run(from, to))
		from = to
	}
}

// worthACall is how many takes of one call cost a store more than a call of their own.
const worthACall = 16

// run makes the call of equal takes.
func (f *flush) run(from, to int) part {
	p, op := part{from: from, to: to}, f.op
	op.N = f.units[from]
	if to-from > 1 {
		p.series, p.err = f.c.many.TakeMany(f.ctx, op, to-from)
		return p
	}
	res, err := f.c.one(f.ctx, op)
	p.results, p.err = []ratelimit.Result{res}, err
	return p
}

// each makes one call of all takes.
func (f *flush) each() part {
	if len(f.units) == 1 {
		return f.run(0, 1)
	}
	ops := make([]ratelimit.Op, len(f.units))
	for i, n := range f.units {
		ops[i] = f.op
		ops[i].N, ops[i].Apart = n, true
	}
	results, err := f.c.inner.Do(f.ctx, ops)
	return part{to: len(ops), results: results, err: err}
}

// Finish keeps the outcome from those who leave.
func (f *flush) Finish(abnormal error) {
	f.list.mu.Lock()
	defer f.list.mu.Unlock()
	f.ended = true
	if p, ok := abnormal.(*lazy.PanicError); ok {
		f.panicked = p
	} else {
		f.goexit = abnormal
	}
}

// result returns what the take at a place came to, once the call has ended.
func (f *flush) result(place int) (ratelimit.Result, error) {
	switch {
	case f.panicked != nil:
		f.panicked.Raise()
	case f.goexit != nil:
		return ratelimit.Result{}, f.goexit
	case f.ranks != nil:
		place = f.ranks[place]
	}
	i := 0
	for place >= f.parts[i].to {
		i++
	}
	p := &f.parts[i]
	switch {
	case p.err != nil:
		return ratelimit.Result{}, p.err
	case p.results != nil:
		return p.results[place-p.from], nil
	default:
		return p.series.Result(place - p.from), nil
	}
}
