package layer

import (
	"cmp"
	"context"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// DenyCacheOptions are the layer that remembers what the store has denied, and denies it again by
// itself for as long as the store would: an attacker costs a look into memory instead of a call. The
// zero value is usable.
//
// A denial of n units at a limit refuses takes of n or more, at that limit or a lower one
// of the same counter, until the time at which the store was asked plus RetryAfter. A take
// that leaves nothing says the same of one unit. Of a rule with a Block, the store sees
// every denial until the block begins, and then none until it ends. A group of takes, such
// as a Union's, is refused if one of them is and something is known of all others. No
// other op is answered here.
//
// So without [DenyCacheOptions.Block] a take passes if, and only if, it would without the
// cache. There are these exceptions, all of them on the strict side, until the RetryAfter
// that was told: a Reset, a Refund or a charge at a higher limit of a GCRA that another
// process makes, or one through this cache that fails and yet takes effect; and whatever
// makes the store forget, or have room, before it said.
//
// What it answers is [ratelimit.FromDenyCache]. RetryAfter is what is left of the time;
// if n is larger than what was denied then, the store may well ask for more (a GCRA
// doesn't). Remaining and ResetAfter are as the store told them: some units may be back by now,
// or others may have charged. In a refused group, Violated marks those that are known to deny.
type DenyCacheOptions struct {
	// Keys is how many counters of keys are remembered, rounded up to a power of two of
	// at least 8. A place takes 16 bytes, and 200 and the key's length when it is taken.
	// What ends first makes room for what is new. Default: 65,536.
	Keys int
	// Block is how long, at least, a take is refused here after the store has denied it,
	// even if the store would allow it again. Each process has its own. Default: 0, as
	// long as the store would deny it and no longer.
	Block time.Duration
}

func (o DenyCacheOptions) withDefaults() DenyCacheOptions {
	if o.Keys == 0 {
		o.Keys = 1 << 16
	}
	return o
}

func (o DenyCacheOptions) check() error {
	return cmp.Or(
		option.Count("layer", "DenyCacheOptions.Keys", o.Keys, 1),
		option.Duration("layer", "DenyCacheOptions.Block", o.Block, 0),
	)
}

// denyCache is what DenyCacheOptions configures.
type denyCache struct {
	inner ratelimit.Store
	one   func(context.Context, ratelimit.Op) (ratelimit.Result, error)
	notes *notes
	block time.Duration
	clock func() time.Time // nil for the time since start
	start time.Time
}

// newDenyCache returns a cache around inner. An error names the field that is out of range.
func newDenyCache(inner ratelimit.Store, o DenyCacheOptions) (*denyCache, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	return &denyCache{inner: inner, one: storage.DoOne(inner), notes: newNotes(o.Keys), block: o.Block, start: time.Now()}, nil
}

// now is the time on a clock that never goes back.
func (c *denyCache) now() time.Duration {
	if c.clock == nil {
		return time.Since(c.start)
	}
	return c.clock().Sub(c.start)
}

// DoOne is Do with a list of one. What is refused costs a hash, a look into a table and no
// allocation.
func (c *denyCache) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	set, tag := c.notes.place(op.Key)
	if op.Kind == ratelimit.Take && op.Prepaid == 0 {
		now := c.now()
		if t := set.find(tag, op.Key, &op.Rule, now); t != nil && 1 <= op.N && op.N <= op.Rule.Burst() && t.refuses(op.N, &op.Rule) {
			if ctx.Err() != nil {
				return ratelimit.Result{}, context.Cause(ctx)
			}
			return t.refusal(op.N, &op.Rule, now), nil
		}
	}
	return c.ask(ctx, op, set, tag)
}

func (c *denyCache) ask(ctx context.Context, op ratelimit.Op, set *noteSet, tag uint32) (res ratelimit.Result, err error) {
	ops, results := [1]ratelimit.Op{op}, [1]ratelimit.Result{}
	a, ok := c.before(ops[:], set, tag), false
	defer func() { a.after(results[:], ok) }()
	results[0], err = c.one(ctx, op)
	ok = err == nil
	return results[0], err
}

// Do runs ops as [ratelimit.Store] says: those groups that are refused here, the others
// in one call of the store. Its errors are those of [storage.Validate], the cause of
// ctx's end, and the store's.
func (c *denyCache) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := storage.Validate(ops); err != nil {
		return nil, err
	}
	out := make([]ratelimit.Result, len(ops))
	u := c.split(ops, out)
	if len(u.ops) == 0 {
		return out, nil
	}
	results, err := u.ask(ctx)
	if err != nil {
		return nil, err
	}
	for i, at := range u.at {
		out[at] = results[i]
	}
	return out, nil
}
