package ratelimit

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/reqctx"
)

// terms holds the subject and the rules that a policy has found for one request.
type terms struct {
	policy  *boundPolicy
	subject string
	rules   []Rule
}

// run runs an op for each rule, in one call. In a take, rules without a limit count the units that the other rules
// allowed, in a second call. The results are in buf if there is room for them.
func (t *terms) run(ctx context.Context, kind Kind, n int64, buf []Result) ([]Result, error) {
	if len(t.rules) == 1 {
		res, err := t.policy.store.DoOne(ctx, t.newOp(t.rules[0], kind, n))
		return append(buf[:0], res), t.policy.wrapStoreError(ctx, err)
	}
	var results []Result
	ops, allowed := make([]Op, 0, len(t.rules)), true
	isLate := func(r Rule) bool { return kind == Take && r.Limit() == 0 }
	for _, late := range [...]bool{false, true} {
		ops = ops[:0]
		for _, r := range t.rules {
			if isLate(r) == late {
				ops = append(ops, t.newOp(r, kind, n))
			}
		}
		if len(ops) == 0 || !allowed {
			continue
		}
		out, err := t.policy.store.Do(ctx, ops)
		if err != nil || len(out) == len(t.rules) {
			return out, t.policy.wrapStoreError(ctx, err)
		}
		if results == nil {
			results = make([]Result, len(t.rules))
		}
		for i, r := range t.rules {
			if isLate(r) == late {
				results[i], out = out[0], out[1:]
				allowed = allowed && results[i].Allowed
			}
		}
	}
	return results, nil
}

// runMerged runs an op for each rule and returns the merged result.
func (t *terms) runMerged(ctx context.Context, kind Kind, n int64) (Result, error) {
	var one [1]Result
	results, err := t.run(ctx, kind, n, one[:])
	if err != nil {
		return Result{}, err
	}
	return t.merge(results), nil
}

// newOp returns the op of a rule. A rule without a limit takes with an Add and peeks with a Count.
func (t *terms) newOp(r Rule, kind Kind, n int64) Op {
	switch {
	case r.Limit() > 0:
	case kind == Take:
		kind = Add
	case kind == Peek:
		kind = Count
	}
	return Op{Rule: r, Key: t.subject, N: n, Kind: kind}
}

// countIn counts over d with the first rule; zero means its Per.
func (t *terms) countIn(ctx context.Context, d time.Duration) (int64, error) {
	res, err := t.policy.store.DoOne(ctx, Op{Rule: t.rules[0], Key: t.subject, Kind: Count, Interval: d})
	return res.Count, t.policy.wrapStoreError(ctx, err)
}

// merge combines the results of the rules in one result.
func (t *terms) merge(results []Result) Result {
	sum := mergeResults(t.rules, results)
	if sum.Allowed && len(results) == 1 {
		return sum
	}
	sum.more = &details{denied: DeniedError{Limit: sum.Limit, RetryAfter: sum.RetryAfter}}
	if len(results) > 1 {
		sum.more.each = results
	}
	for i, r := range results {
		if r.Violated && !r.isUnenforced(t.rules[i]) {
			sum.more.denied.Policies = append(sum.more.denied.Policies, t.policy.quotaName(t.rules[i], len(t.rules) == 1))
		}
	}
	return sum
}

// charge is the result of a request's take.
type charge struct {
	terms
	sum     Result
	results []Result  // one for each rule
	one     [1]Result // the array of results if there is one

	refunding sync.Once
	refunded  bool
	refundErr error
	after     atomic.Pointer[[]Result] // what the refund has left
}

// refundTime is the maximum duration of a refund. Most stores have a shorter timeout.
const refundTime = 5 * time.Second

var errRefundPanicked = errors.New("ratelimit: the refund has panicked")

// refund gives back what the request was charged, once. It goes on if ctx ends, because handlers refund requests whose
// client has left, and a refund cannot be repeated: the store does not remember it.
func (c *charge) refund(ctx context.Context) (bool, error) {
	c.refunding.Do(func() {
		c.refundErr = errRefundPanicked // for later callers
		ctx = context.WithoutCancel(ctx)
		ops := make([]Op, len(c.rules))
		for i, r := range c.rules {
			ops[i] = Op{Rule: r, Key: c.subject, Kind: Refund, Receipt: c.results[i].Receipt}
		}
		limited, cancel := context.WithTimeout(ctx, refundTime)
		defer cancel()
		results, err := c.policy.store.Do(limited, ops)
		_ = c.policy.propertyKeys().count.Invalidate(ctx) // fails only if the request is over
		if c.refundErr = c.policy.wrapStoreError(ctx, err); err != nil {
			return
		}
		c.after.Store(&results)
		c.refunded = !slices.ContainsFunc(results, func(r Result) bool { return !r.Allowed })
	})
	return c.refunded, c.refundErr
}

// Decision is the result of one rule in a take. It does not contain the request's key, which Policy.Subject returns.
type Decision struct {
	Policy string  // the policy's name
	Of     *Policy // the policy
	Quota  string  // the rule's name in header fields: the policy's, or with the rule's after a dot
	Rule   Rule
	// Result is the rule's own result. Violated reports that the rule denied the take, or would have denied it if
	// Source is FromShadow.
	Result Result
}

// Decisions returns the decisions of all takes so far in the innermost request of ctx. After the request is finished,
// there are none. In a handler behind a [Middleware] that makes its own charge, the innermost request is the
// middleware's. An observer gets the decisions of the server's policies, and not those of a Middleware. Decisions
// does no I/O.
func Decisions(ctx context.Context) iter.Seq[Decision] {
	return func(yield func(Decision) bool) {
		request := reqctx.From(ctx)
		if request == nil {
			return
		}
		l, _ := limits.Get(request) // after an error, it has no policies
		for _, p := range l.policies[:l.own] {
			c, err, taken := p.propertyKeys().take.Peek(request)
			if err != nil || !taken {
				continue
			}
			for i, res := range c.results {
				quota := c.policy.quotaName(c.rules[i], len(c.rules) == 1)
				if !yield(Decision{Policy: p.Name, Of: p, Quota: quota, Rule: c.rules[i], Result: res}) {
					return
				}
			}
		}
	}
}
