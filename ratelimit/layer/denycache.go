package layer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// DenyCacheOptions configure the layer that remembers the store's denials, and repeats them for
// as long as the store would: a denied client costs a look-up in memory instead of a call. The
// zero value is usable.
//
// A denial of n units denies takes of n or more units with the same rule, until the time of the
// call plus RetryAfter. A take that leaves nothing is a denial of one unit. For a rule with a
// Block, the store sees every denial until the block begins, and then none until it ends. A
// group of takes, such as a policy's, is denied if one of them is and something is known of all
// others. No other op is answered here.
//
// So without [DenyCacheOptions.Block], a take passes if and only if it would without the cache.
// Exceptions, which only deny longer and only until the reported RetryAfter: a Reset, a Refund
// or a charge at a higher limit of a GCRA, made by another process, or by a failed call that
// took effect; and a store that evicts, or has room again, earlier than reported.
//
// Results are from [ratelimit.FromDenyCache]. RetryAfter is the rest of the reported time; a take
// of more units than were denied may have to wait longer. Remaining and ResetAfter are as
// reported. In a denied group, Violated marks the takes that are known to be denied.
type DenyCacheOptions struct {
	// Keys is how many counters of keys are remembered, rounded up to a power of two of at
	// least 8. A place takes 16 bytes, and 200 and the key's length while it is used. The
	// denial that ends first makes room for a new one. Zero means 65,536.
	Keys int
	// Block is the minimum time for which a take is denied in this process after the store
	// has denied it, even if the store would allow it again. Zero means as long as the store
	// would deny it.
	Block time.Duration
}

// denyCache is the layer of DenyCacheOptions.
type denyCache struct {
	inner ratelimit.Store
	table *denialTable
	block time.Duration
	clock func() time.Time // nil for the real one
	start time.Time
}

// newDenyCache returns a cache around inner. It returns an error if an option is out of range.
func newDenyCache(inner ratelimit.Store, o DenyCacheOptions) (*denyCache, error) {
	o.Keys = cmp.Or(o.Keys, 1<<16)
	if err := cmp.Or(
		option.Count("layer", "DenyCacheOptions.Keys", o.Keys, 1),
		option.Duration("layer", "DenyCacheOptions.Block", o.Block, 0),
	); err != nil {
		return nil, err
	}
	return &denyCache{inner: inner, table: newDenialTable(o.Keys), block: o.Block, start: time.Now()}, nil
}

// now returns the time since the layer was made, on a monotonic clock.
func (c *denyCache) now() time.Duration {
	if c.clock == nil {
		return time.Since(c.start)
	}
	return c.clock().Sub(c.start)
}

// DoOne implements [ratelimit.Store]. A denial from the cache costs a hash, a look-up and no
// allocation.
func (c *denyCache) DoOne(ctx context.Context, op ratelimit.Op) (res ratelimit.Result, err error) {
	if ctx.Err() != nil {
		return res, context.Cause(ctx)
	}
	set, tag := c.table.setFor(op.Key)
	ops, results := [1]ratelimit.Op{op}, [1]ratelimit.Result{}
	if set.answer(tag, ops[:], results[:], c.now()) {
		return results[0], nil
	}
	return c.callOne(ctx, op, set, tag)
}

func (c *denyCache) callOne(ctx context.Context, op ratelimit.Op, set *denialSet, tag uint32) (res ratelimit.Result, err error) {
	ok, results := false, []ratelimit.Result{{}}
	q := query{denyCache: c, ops: []ratelimit.Op{op}, results: results, set: set, tag: tag}
	q.begin()
	defer func() { q.end(ok) }() // even after a panic
	results[0], err = c.inner.DoOne(ctx, op)
	ok = err == nil
	return results[0], err
}

// Do implements [ratelimit.Store]. Groups that the cache doesn't deny are one call of the store.
// Its errors are those of [storage.Validate], the cause of ctx's end, and the store's.
func (c *denyCache) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if err := check(ctx, ops); err != nil {
		return nil, err
	}
	rest, queries, ok := subset{out: make([]ratelimit.Result, len(ops))}, []query(nil), false
	for from, group := range storage.Groups(ops) {
		set, tag := c.table.setFor(group[0].Key)
		queries = append(queries, query{denyCache: c, from: from, ops: group, results: rest.out[from : from+len(group)], set: set, tag: tag})
	}
	if len(queries) == 1 || !slices.ContainsFunc(ops, mayInvalidate) { // one group may allow what another is denied
		now := c.now()
		queries = slices.DeleteFunc(queries, func(q query) bool { return q.set.answer(q.tag, q.ops, q.results, now) })
	}
	for i := range queries {
		queries[i].begin()
		rest.newGroup = true
		for j, op := range queries[i].ops {
			rest.add(op, queries[i].from+j)
		}
	}
	defer func() { // even after a panic
		for i := range queries {
			queries[i].end(ok)
		}
	}()
	err := rest.do(ctx, c.inner)
	ok = err == nil
	return rest.out, err
}
