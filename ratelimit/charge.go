package ratelimit

import (
	"context"
	"errors"
	"iter"
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
	store   Store // runs an op of the first rule with every rule
}

// op returns an op for the request's subject and its first rule.
func (t *terms) op(kind Kind, n int64) Op {
	return Op{Rule: t.rules[0], Key: t.subject, N: n, Kind: kind, Tentative: t.policy.Settle != nil}
}

// run runs op with all rules. If the result is a denial, it has the names of the rules that denied.
func (t *terms) run(ctx context.Context, op Op) (Result, error) {
	if t.rules[0].Limit() == 0 { // a policy that only counts
		switch op.Kind {
		case Take:
			op.Kind = Add
		case Peek:
			op.Kind = Count
		}
	}
	res, err := t.store.DoOne(ctx, op)
	if err != nil {
		return Result{}, t.policy.wrapStoreError(ctx, err)
	}
	if !res.Allowed {
		denied := DeniedError{Limit: res.Limit, RetryAfter: res.RetryAfter, hideNames: !t.policy.Headers.includesDraft10()}
		for i, r := range t.rules {
			if one := res.ofRule(i); one.Violated && one.Source != FromShadow {
				denied.Policies = append(denied.Policies, t.policy.quotaName(r, len(t.rules) == 1))
			}
		}
		res.more = &details{denied: denied, each: res.Each()}
	}
	return res, nil
}

// charge is the result of a request's take.
type charge struct {
	terms
	res Result

	refunding sync.Once
	refunded  bool
	refundErr error
	after     atomic.Pointer[Result] // the result of the refund
}

// refundTime is the maximum duration of a refund. Most stores have a shorter timeout.
const refundTime = 5 * time.Second

var errRefundPanicked = errors.New("ratelimit: the refund has panicked")

// refund gives back the request's charge, once. It does not stop when ctx ends, because handlers also refund requests whose
// client has left. A refund cannot be repeated, because the store does not remember refunds.
func (c *charge) refund(ctx context.Context) (bool, error) {
	c.refunding.Do(func() {
		c.refundErr = errRefundPanicked // later calls return this error if the store panics
		ctx = context.WithoutCancel(ctx)
		limited, cancel := context.WithTimeout(ctx, refundTime)
		defer cancel()
		back, err := refund(limited, c.store, c.op(Refund, 0), c.res)
		_ = c.policy.propertyKeys().count.Invalidate(ctx) // fails only if the request is over
		if c.refundErr = c.policy.wrapStoreError(ctx, err); err != nil {
			return
		}
		c.after.Store(&back)
		for i, r := range c.rules {
			if r.concurrent() {
				continue
			}
			if c.refunded = back.ofRule(i).Allowed; !c.refunded {
				break
			}
		}
	})
	return c.refunded, c.refundErr
}

// Decision is the result of one rule in a take. It does not contain the request's key, which Policy.Subject returns.
type Decision struct {
	Policy string  // the policy's name
	Of     *Policy // the policy
	Quota  string  // the rule's name in header fields, such as "search" or "search.60s"
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
		l, _ := limits.Get(request) // if this fails, l has no policies
		for _, p := range l.policies[:l.own] {
			c, err, taken := p.propertyKeys().take.Peek(request)
			if err != nil || !taken {
				continue
			}
			for i, r := range c.rules {
				quota := c.policy.quotaName(r, len(c.rules) == 1)
				if !yield(Decision{Policy: c.policy.Name, Of: p, Quota: quota, Rule: r, Result: *c.res.ofRule(i)}) {
					return
				}
			}
		}
	}
}
