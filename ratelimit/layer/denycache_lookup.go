package layer

import (
	"context"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// result returns the result of a take of n by r, which d denies.
func (d *denial) result(n int64, r *ratelimit.Rule, now time.Duration) ratelimit.Result {
	res := d.notViolated(r, now)
	res.Violated = true
	res.RetryAfter = d.until - now
	if r.Algorithm() == "gcra" && n > d.n && !d.blocked {
		// The additional units take longer, too.
		res.RetryAfter += time.Duration((n-d.n)*d.rule.Per().Microseconds()/d.rule.Limit()) * time.Microsecond
	}
	res.ResetAfter = max(res.ResetAfter, res.RetryAfter)
	if d.blocked {
		res.Remaining, res.Blocked = 0, res.RetryAfter
	}
	return res
}

// notViolated returns the result of a take by r in a group that another take's denial denies.
func (d *denial) notViolated(r *ratelimit.Rule, now time.Duration) ratelimit.Result {
	return ratelimit.Result{
		Source: ratelimit.FromDenyCache, Limit: r.Limit(),
		Remaining:  min(max(0, d.remaining-(d.rule.Burst()-r.Burst())), r.Burst()),
		ResetAfter: max(0, d.reset-now),
	}
}

// maxGroup is the size of the largest group that the cache answers.
const maxGroup = 16

// deny answers a group that is known to be denied, and reports whether it is.
func (c *denyCache) deny(ops []ratelimit.Op, out []ratelimit.Result, set *denialSet, tag uint32) bool {
	if len(ops) > maxGroup {
		return false
	}
	var known [maxGroup]*denial
	denied, now := false, c.now()
	for i := range ops {
		op := &ops[i]
		switch {
		case op.Kind == ratelimit.Add && op.Rule.Limit() == 0:
			continue // it denies nothing, and isn't done in a denied group
		case op.Kind != ratelimit.Take || op.Prepaid != 0:
			return false
		}
		d := set.find(tag, op.Key, &op.Rule, now)
		if d == nil {
			return false
		}
		known[i] = d
		denied = denied || d.denies(op.N+charged(ops[:i], &op.Rule), &op.Rule)
	}
	if !denied {
		return false
	}
	for i := range ops {
		op, d := &ops[i], known[i]
		if d == nil {
			out[i] = ratelimit.Result{Source: ratelimit.FromDenyCache}
		} else if n := op.N + charged(ops[:i], &op.Rule); d.denies(n, &op.Rule) {
			out[i] = d.result(n, &op.Rule, now)
		} else {
			out[i] = d.notViolated(&op.Rule, now)
		}
	}
	return true
}

// misses are the ops of a list that the store has to be asked.
type misses struct {
	inner  ratelimit.Store
	ops    []ratelimit.Op
	at     []int // the index of each op in the whole list
	groups []pendingQuery
}

// lookup answers the groups of ops that are known to be denied, and returns the others. If one
// op may allow what was denied, these are all groups.
func (c *denyCache) lookup(ops []ratelimit.Op, out []ratelimit.Result) misses {
	m := misses{inner: c.inner, ops: make([]ratelimit.Op, 0, len(ops)), at: make([]int, 0, len(ops))}
	invalidated := false
	for i := range ops {
		set, _ := c.table.locate(ops[i].Key)
		invalidated = invalidated || set.invalidates(&ops[i])
	}
	for i, group := range storage.Groups(ops) {
		set, tag := c.table.locate(group[0].Key)
		if !invalidated && c.deny(group, out[i:i+len(group)], set, tag) {
			continue
		}
		from := len(m.ops)
		m.ops = append(m.ops, group...)
		m.ops[from].NewGroup = true // another group may be before it now
		for j := range group {
			m.at = append(m.at, i+j)
		}
		m.groups = append(m.groups, c.begin(m.ops[from:], set, tag))
	}
	return m
}

// ask asks the store, and keeps what it answers.
func (m *misses) ask(ctx context.Context) (results []ratelimit.Result, err error) {
	ok := false
	defer func() { // even after a panic
		rest := results
		for i := range m.groups {
			q := &m.groups[i]
			if !ok {
				q.observe(nil, false)
				continue
			}
			n := len(q.ops)
			q.observe(rest[:n], true)
			rest = rest[n:]
		}
	}()
	results, err = m.inner.Do(ctx, m.ops)
	if err == nil && len(results) != len(m.ops) {
		err = fmt.Errorf("%w: %d results of %d ops", ratelimit.ErrStore, len(results), len(m.ops))
	}
	ok = err == nil
	return results, err
}
