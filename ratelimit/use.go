package ratelimit

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
)

// use is what one request has to do with one policy. The request's [Limit]s share it.
type use struct {
	policy *limited
	pass   *passage              // the middleware that has charged; nil: none has
	terms  atomic.Pointer[terms] // nil until somebody needs them
}

// settle returns the terms, found now if need be. Of those that are found at the same
// moment, the first are the request's.
func (u *use) settle(ctx context.Context, r *http.Request) (*terms, error) {
	if t := u.terms.Load(); t != nil {
		return t, nil
	}
	t, err := u.policy.newTerms(ctx, r)
	if err != nil {
		return nil, err
	}
	u.terms.CompareAndSwap(nil, t)
	return u.terms.Load(), nil
}

// settling is the context of a search for terms outside of any property. Nobody waits
// for it, so it can only be in the way of itself.
type settling struct {
	context.Context
	u *use
}

func (s *settling) Value(key any) any {
	if key == s.u {
		return s
	}
	return s.Context.Value(key)
}

// settleHere is settle for callers that are no property. A Key that asks its own policy
// is an error; without this it would ask for ever.
func (u *use) settleHere(ctx context.Context, r *http.Request) (*terms, error) {
	if t := u.terms.Load(); t != nil {
		return t, nil
	}
	if ctx.Value(u) != nil {
		name := "ratelimit." + u.policy.Name + ".key"
		return nil, &lazy.CycleError{Path: []string{name, name}}
	}
	return u.settle(&settling{ctx, u}, r)
}

// refunds are the request's, so that they need no slot for each policy. No policy can
// have its name.
var refunds = reqctx.NewMemo[*use, bool]("ratelimit.*.refund")

// String names the refund in errors.
func (u *use) String() string { return u.policy.Name }

// refund gives back the charge, which its caller has seen.
func refund(ctx context.Context, u *use) (bool, error) {
	keys := u.policy.keys
	c, err := keys.take.Get(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = keys.count.Invalidate(ctx) }() // fails only if the request is over
	if u.pass != nil {
		l, err := u.pass.limit()
		switch {
		case err != nil:
			return false, err
		case l.use != u: // another server's, with the same charge
			return l.Refund()
		}
	}
	return c.refund(ctx)
}
