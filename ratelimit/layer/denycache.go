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

// DenyCacheOptions configures the layer that remembers the store's denials and repeats them as long as the store
// would deny. A denied client then costs a look-up in memory instead of a call of the store. The zero value is
// usable.
//
// A denial of n units denies takes of n or more units by the same rule, until the time of the call plus RetryAfter. A
// take that leaves no units counts as a denial of one unit. If a rule has a Block, the store sees every denial until
// the block begins, and no denials during the block. It sees every denial by a Concurrent. A group of takes, such as
// those of a policy, is denied if the cache denies one of the takes and knows all others. All other ops go to the
// store.
//
// The cache lets a take pass only if the store does. In two cases, it denies a take that would pass without the
// cache, but at most until the reported RetryAfter. First, another process, or a failed call that took effect, may
// reset or refund the counter, or charge a GCRA with a higher limit. Therefore, denials of a [ratelimit.Op] that is
// Tentative are not remembered. Second, a store may evict counters, or have room again, earlier than it reported.
//
// The results are from [ratelimit.FromDenyCache]. RetryAfter is the rest of the reported time. A take of more units
// than the denied one may have to wait longer. Remaining and ResetAfter are as reported. In a denied group, Violated
// marks the takes that the cache knows to be denied.
type DenyCacheOptions struct {
	// MaxKeys is the maximum number of denials. It is rounded up to a power of two of at least 8. Each key and rule
	// needs a place of its own. A free place takes 16 bytes. A place in use takes 200 bytes more, and the key's
	// length. The zero value means 65,536.
	MaxKeys int
}

// denyCache is the layer of DenyCacheOptions.
type denyCache struct {
	inner ratelimit.Store
	table *denialTable
	now   func() time.Duration // the time since the layer was made, on a monotonic clock
}

// newDenyCache returns a cache around inner. It returns an error if an option is out of range.
func newDenyCache(inner ratelimit.Store, o DenyCacheOptions) (*denyCache, error) {
	o.MaxKeys = cmp.Or(o.MaxKeys, 1<<16)
	if err := option.Count("layer", "DenyCacheOptions.MaxKeys", o.MaxKeys, 1); err != nil {
		return nil, err
	}
	start := time.Now()
	now := func() time.Duration { return time.Since(start) }
	return &denyCache{inner: inner, table: newDenialTable(o.MaxKeys), now: now}, nil
}

// DoOne allocates no memory if the cache denies the op.
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
	defer func() { q.end(ok) }() // runs even if the store panics
	results[0], err = c.inner.DoOne(ctx, op)
	ok = err == nil
	return results[0], err
}

// Do runs all groups that the cache does not deny in a single call of the store.
func (c *denyCache) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if err := check(ctx, ops); err != nil {
		return nil, err
	}
	rest, queries, ok := subset{out: make([]ratelimit.Result, len(ops))}, []query(nil), false
	for from, group := range storage.Groups(ops) {
		set, tag := c.table.setFor(group[0].Key)
		queries = append(queries, query{denyCache: c, from: from, ops: group, results: rest.out[from : from+len(group)], set: set, tag: tag})
	}
	if len(queries) == 1 || !slices.ContainsFunc(ops, mayInvalidate) { // otherwise one group may end the denial of another
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
	defer func() { // runs even if the store panics
		for i := range queries {
			queries[i].end(ok)
		}
	}()
	err := rest.do(ctx, c.inner)
	ok = err == nil
	return rest.out, err
}
