package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/reqctx"
)

// Take charges the request, once: further calls return the same result. A denial is a result, whose Err is an error to
// return from a handler. A policy without limits never denies.
//
// A take before the response's header goes out adds the fields RateLimit-Policy and RateLimit to it, and if denied,
// Retry-After and Cache-Control: no-store.
func (p *Policy) Take(ctx context.Context) (Result, error) {
	c, err := p.propertyKeys().take.Get(ctx)
	if err != nil {
		return Result{}, p.explain(ctx, err)
	}
	return c.sum, nil
}

// Start begins to take on another goroutine and returns at once; Take returns the result. Takes and loads of sessions
// that begin together usually share a round trip to the store. A take that no code has waited for is cancelled when
// the handler returns, and may have charged.
func (p *Policy) Start(ctx context.Context) error {
	return p.explain(ctx, p.propertyKeys().take.Start(ctx))
}

// Require is Take with a denial as an error, a [*DeniedError]. A handler returns it to answer 429.
func (p *Policy) Require(ctx context.Context) error {
	res, err := p.Take(ctx)
	if err != nil {
		return err
	}
	return res.Err()
}

// Peek returns the result that another take would have now, and charges nothing. It asks the store each time. A policy
// without limits allows it.
func (p *Policy) Peek(ctx context.Context) (Result, error) {
	t, n, err := p.propertyKeys().termsAndCost(ctx)
	if err != nil {
		return Result{}, p.explain(ctx, err)
	}
	return t.runMerged(ctx, Peek, n)
}

// Add charges n units more, which may be 0, each time and whatever the limits. If the store fails, some of several
// rules may be charged. The result's Count is that of the first rule over its Per, with the n units. The response's
// header does not count them.
func (p *Policy) Add(ctx context.Context, n int64) (Result, error) {
	k := p.propertyKeys()
	t, err := k.terms.Get(ctx)
	if err != nil {
		return Result{}, p.explain(ctx, err)
	}
	res, err := t.runMerged(ctx, Add, n)
	_ = k.count.Invalidate(ctx) // fails only if the request is over
	return res, err
}

// Count returns the units of the last Per of the request's first rule. It asks the store once for the request, and
// again after a charge or a refund. It returns [ErrNoCount] if the rule cannot count.
func (p *Policy) Count(ctx context.Context) (int64, error) {
	n, err := p.propertyKeys().count.Get(ctx)
	return n, p.explain(ctx, err)
}

// CountIn returns the units of the last d, which is at most the first rule's span, or else it returns [ErrInterval].
// Zero means the rule's Per. It asks the store each time.
func (p *Policy) CountIn(ctx context.Context, d time.Duration) (int64, error) {
	t, err := p.propertyKeys().terms.Get(ctx)
	if err != nil {
		return 0, p.explain(ctx, err)
	}
	return t.countIn(ctx, d)
}

// Refund gives back the units that Take has charged, once: further calls return the same. It waits for the store even
// if the client leaves, for 5 seconds at most. It returns false if nothing was charged, or if the store no longer has
// the charge. Take still returns its result, and charges no more. The response's header shows the refund, unless it
// has been sent or a middleware has written it.
func (p *Policy) Refund(ctx context.Context) (bool, error) {
	c, err, taken := p.propertyKeys().take.Peek(ctx)
	if err != nil || !taken || !c.sum.Allowed {
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
