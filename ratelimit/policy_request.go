package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/reqctx"
)

// Take charges the request once. Further calls return the same result. If the limit denies the request, the result's
// Err is an error that a handler can return. A policy without limits never denies.
//
// If Take is called before the response's header goes out, the header gets the fields RateLimit-Policy and RateLimit.
// After a denial, it also gets Retry-After and Cache-Control: no-store.
func (p *Policy) Take(ctx context.Context) (Result, error) {
	c, err := p.propertyKeys().take.Get(ctx)
	if err != nil {
		return Result{}, p.explain(ctx, err)
	}
	return c.res, nil
}

// Start begins to take on another goroutine and returns at once. Take then returns the result. Takes and loads of
// sessions that begin together usually share a round trip to the store. If no code has waited for the take when the
// handler returns, the take is cancelled, but it may already have charged the request.
func (p *Policy) Start(ctx context.Context) error {
	return p.explain(ctx, p.propertyKeys().take.Start(ctx))
}

// Require is like Take but returns a denial as an error, a [*DeniedError]. A handler returns this error to answer
// with a 429.
func (p *Policy) Require(ctx context.Context) error {
	res, err := p.Take(ctx)
	if err != nil {
		return err
	}
	return res.Err()
}

// Peek returns the result that another take would have now, and charges nothing. It calls the store each time. A
// policy without limits always allows the take.
func (p *Policy) Peek(ctx context.Context) (Result, error) {
	t, n, err := p.propertyKeys().termsAndCost(ctx)
	if err != nil {
		return Result{}, p.explain(ctx, err)
	}
	return t.run(ctx, t.op(Peek, n))
}

// Add charges n more units, which may be 0, at each call and even beyond the limits. If the store fails and there are
// several rules, some of them may have been charged. The result's Count is the count of the first rule over its Per,
// and includes the n units. The response's header does not include them.
func (p *Policy) Add(ctx context.Context, n int64) (Result, error) {
	k := p.propertyKeys()
	t, err := k.terms.Get(ctx)
	if err != nil {
		return Result{}, p.explain(ctx, err)
	}
	res, err := t.run(ctx, t.op(Add, n))
	_ = k.count.Invalidate(ctx) // fails only if the request is over
	return res, err
}

// Count returns the number of units that the request's first rule counted in its last Per. It calls the store once
// for the request, and again after a charge or a refund. It returns [ErrNoCount] if the rule cannot count.
func (p *Policy) Count(ctx context.Context) (int64, error) {
	n, err := p.propertyKeys().count.Get(ctx)
	return n, p.explain(ctx, err)
}

// CountIn returns the number of units that the first rule counted in the last interval. A zero interval means the rule's
// Per. It returns [ErrInterval] if the interval is longer than the rule's span. It calls the store each time.
func (p *Policy) CountIn(ctx context.Context, interval time.Duration) (int64, error) {
	t, err := p.propertyKeys().terms.Get(ctx)
	if err != nil {
		return 0, p.explain(ctx, err)
	}
	op := t.op(Count, 0)
	op.Interval = interval
	res, err := t.run(ctx, op)
	return res.Count, err
}

// Refund gives back the units that Take has charged. It does so once, and further calls return the same result. It
// waits for the store even if the client leaves, for 5 seconds at most. It returns false if nothing was charged, or
// if the store no longer has the charge. It does not release the units of a [Concurrent]. Later calls of Take still
// return their result and do not charge the request again. The response's header shows the refund, unless it has been
// sent or a middleware has written it.
func (p *Policy) Refund(ctx context.Context) (bool, error) {
	c, err, taken := p.propertyKeys().take.Peek(ctx)
	if err != nil || !taken || !c.res.Allowed {
		return false, p.explain(ctx, err)
	}
	return c.refund(ctx)
}

// Subject returns the request's key in the store: the policy's name, and ":" and the key of its Key, or "~" and the
// key of its Fallback, in the form that [KeyFunc] describes. It does not ask the store. Requests with the same subject
// share their quota.
func (p *Policy) Subject(ctx context.Context) (string, error) {
	t, err := p.propertyKeys().terms.Get(ctx)
	return t.subject, p.explain(ctx, err)
}

// explain returns err, or a more helpful error if the request does not have p. An ErrNoProperty may also come from one
// of p's own functions.
func (p *Policy) explain(ctx context.Context, err error) error {
	if !errors.Is(err, reqctx.ErrNoProperty) {
		return err
	}
	if _, missing := p.propertyKeys().take.Owner(ctx); !errors.Is(missing, reqctx.ErrNoProperty) {
		return err
	}
	text := fmt.Sprintf("ratelimit: the request has no policy %q: give this *Policy to the server, in Options.RateLimits", p.Name)
	return option.WithText(text, reqctx.ErrNoProperty)
}
