package layer

import (
	"context"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// refusal answers a take of n by r that the note refuses.
func (t *note) refusal(n int64, r *ratelimit.Rule, now time.Duration) ratelimit.Result {
	res := t.left(r, now)
	res.Violated = true
	res.RetryAfter = t.until - now
	if r.Algorithm() == "gcra" && n > t.n && !t.blocked {
		// It also takes the time of so many more.
		res.RetryAfter += time.Duration((n-t.n)*t.rule.Per().Microseconds()/t.rule.Limit()) * time.Microsecond
	}
	res.ResetAfter = max(res.ResetAfter, res.RetryAfter)
	if t.blocked {
		res.Remaining, res.Blocked = 0, res.RetryAfter
	}
	return res
}

// left answers a take of r in a group that is refused because of another.
func (t *note) left(r *ratelimit.Rule, now time.Duration) ratelimit.Result {
	return ratelimit.Result{
		Source: ratelimit.FromDenyCache, Limit: r.Limit(),
		Remaining:  min(max(0, t.remaining-(t.rule.Burst()-r.Burst())), r.Burst()),
		ResetAfter: max(0, t.reset-now),
	}
}

// maxGroup is the largest group that is refused here.
const maxGroup = 16

// refuse answers a group if it is known to be denied, and tells whether it is.
func (c *denyCache) refuse(ops []ratelimit.Op, out []ratelimit.Result, set *noteSet, tag uint32) bool {
	if len(ops) > maxGroup {
		return false
	}
	var known [maxGroup]*note
	refused, now := false, c.now()
	for i := range ops {
		op := &ops[i]
		switch {
		case op.Kind == ratelimit.Add && op.Rule.Limit() == 0:
			continue // it has nothing to say
		case op.Kind != ratelimit.Take || op.Prepaid != 0:
			return false
		}
		t := set.find(tag, op.Key, &op.Rule, now)
		if t == nil {
			return false
		}
		known[i] = t
		refused = refused || t.refuses(op.N+pending(ops[:i], &op.Rule), &op.Rule)
	}
	if !refused {
		return false
	}
	for i := range ops {
		op, t := &ops[i], known[i]
		switch {
		case t == nil:
			out[i] = ratelimit.Result{Source: ratelimit.FromDenyCache}
		case t.refuses(op.N+pending(ops[:i], &op.Rule), &op.Rule):
			out[i] = t.refusal(op.N+pending(ops[:i], &op.Rule), &op.Rule, now)
		default:
			out[i] = t.left(&op.Rule, now)
		}
	}
	return true
}

// misses is what of a list of ops the store has to be asked.
type misses struct {
	*denyCache
	ops    []ratelimit.Op
	at     []int // where each op is in the whole list
	groups []asking
}

// split refuses what groups of ops it can, and returns the others. If one of the groups
// loosens anything, the store is asked about all.
func (c *denyCache) split(ops []ratelimit.Op, out []ratelimit.Result) misses {
	u := misses{denyCache: c, ops: make([]ratelimit.Op, 0, len(ops)), at: make([]int, 0, len(ops))}
	loose := false
	for i := range ops {
		set, _ := c.notes.place(ops[i].Key)
		loose = loose || set.loosens(&ops[i])
	}
	for i, group := range storage.Groups(ops) {
		set, tag := c.notes.place(group[0].Key)
		if !loose && c.refuse(group, out[i:i+len(group)], set, tag) {
			continue
		}
		from := len(u.ops)
		u.ops = append(u.ops, group...)
		u.ops[from].NewGroup = true // whatever is before it now
		for j := range group {
			u.at = append(u.at, i+j)
		}
		u.groups = append(u.groups, c.before(u.ops[from:], set, tag))
	}
	return u
}

// ask asks the store, and takes note of what it says.
func (u *misses) ask(ctx context.Context) (results []ratelimit.Result, err error) {
	ok := false
	defer func() {
		from := 0
		for i := range u.groups {
			g, to := &u.groups[i], from+len(u.groups[i].ops)
			if ok {
				g.after(results[from:to], true)
			} else {
				g.after(nil, false)
			}
			from = to
		}
	}()
	results, err = u.inner.Do(ctx, u.ops)
	if err == nil && len(results) != len(u.ops) {
		err = fmt.Errorf("%w: %d results of %d ops", ratelimit.ErrStore, len(results), len(u.ops))
	}
	ok = err == nil
	return results, err
}
