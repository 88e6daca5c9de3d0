package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/internal/errtext"
	"github.com/lazyreq/lazyreq/reqctx"
)

// Limit is one request's view of one policy, made by [From] or [For]. Its methods return the
// errors of finding the request's key (ErrNoKey), its rules and its cost (ErrTooLarge), and those
// of the store (ErrStore). They can be called concurrently. The zero Limit has no policy: its methods
// return an error.
type Limit struct {
	ctx  context.Context
	keys *propertyKeys
	err  error // why there is no policy; nil in the zero Limit
}

var errZeroLimit = errtext.New("ratelimit: the zero Limit has no policy", reqctx.ErrNoProperty)

// missing returns an error if the limit has no policy.
func (l Limit) missing() error {
	if l.keys == nil {
		return cmp.Or(l.err, errZeroLimit)
	}
	return nil
}

var (
	firstLimit = reqctx.NewKey[Limit]("ratelimit")
	// nearestLimit is the limit of the nearest middleware. No policy can have its name.
	nearestLimit = reqctx.NewKey[Limit]("ratelimit.*.middleware")
)

// From returns the limit of ctx's request by the first policy that was registered with
// [Provide], or else by the nearest [Middleware] on the way here. It does no I/O. It returns an
// error if ctx has no request, the request is over, or there is no policy. The limit's methods
// then return that error, too.
func From(ctx context.Context) (Limit, error) {
	l, err := firstLimit.Get(ctx)
	if errors.Is(err, reqctx.ErrNoProperty) {
		if m, merr := nearestLimit.Get(ctx); !errors.Is(merr, reqctx.ErrNoProperty) {
			l, err = m, merr
		}
	}
	if err != nil {
		return Limit{err: err}, err
	}
	return Limit{ctx: ctx, keys: l.keys}, nil
}

// For is [From] for the policy of a name: one that was registered, or that a middleware has
// charged, the nearest of them if there are several.
func For(ctx context.Context, name string) (Limit, error) {
	k, err, taken := findKeys(keysByPolicy, name), reqctx.ErrNoProperty, false
	if k != nil {
		_, err, taken = k.take.Peek(ctx)
	}
	switch {
	case taken || err == nil:
		return Limit{ctx: ctx, keys: k}, nil
	case errors.Is(err, reqctx.ErrNoProperty):
		err = noPolicy(ctx, name)
	}
	return Limit{err: err}, err
}

// For returns the policy's limit of ctx's request. It finds the policy by its name.
func (p *Policy) For(ctx context.Context) (Limit, error) { return For(ctx, p.Name) }

// noPolicy returns an error that names the policies that ctx's request has.
func noPolicy(ctx context.Context, name string) error {
	c := reqctx.From(ctx)
	if c == nil {
		return fmt.Errorf("%w: policy %q", reqctx.ErrNoRequest, name)
	}
	var have []string
	for ; c != nil; c = reqctx.From(c.Context) {
		for property := range c.Props() {
			if k := findKeys(keysByTake, property); k != nil {
				have = append(have, k.policy)
			}
		}
	}
	return errtext.New(fmt.Sprintf("ratelimit: no policy %q (provided: %s)", name, strings.Join(have, ", ")), reqctx.ErrNoProperty)
}

// Name returns the policy's name, "" if there is no policy.
func (l Limit) Name() string {
	if l.keys == nil {
		return ""
	}
	return l.keys.policy
}

// terms returns the request's key and rules.
func (l Limit) terms() (terms, error) {
	if err := l.missing(); err != nil {
		return terms{}, err
	}
	return l.keys.terms.Get(l.ctx)
}

// Subject returns the request's key in the store: the policy's name and the key that its Key
// (behind ":") or Fallback (behind "~") has found, in the form that [KeyFunc] describes. It doesn't
// ask the store. Requests with the same subject share their quota.
func (l Limit) Subject() (string, error) {
	t, err := l.terms()
	return t.subject, err
}

// Take charges the request, once: further calls return the same result. A denial is a result,
// whose Err is an error to return from a handler. A policy without limits never denies.
//
// A take before the response's header goes out adds the fields RateLimit-Policy and
// RateLimit to it, and Retry-After and Cache-Control: no-store if denied.
func (l Limit) Take() (Result, error) {
	if err := l.missing(); err != nil {
		return Result{}, err
	}
	c, err := l.keys.take.Get(l.ctx)
	if err != nil {
		return Result{}, err
	}
	return c.sum, nil
}

// Start begins to take on another goroutine and returns at once; Take returns the result. Takes
// and loads of sessions that begin together usually share a round trip to the store. A take that
// nothing has waited for is cancelled when the handler returns, and may have charged.
func (l Limit) Start() error {
	if err := l.missing(); err != nil {
		return err
	}
	return l.keys.take.Start(l.ctx)
}

// Require is Take with a denial as an error, a [*DeniedError]. A handler returns it to answer 429.
func (l Limit) Require() error {
	res, err := l.Take()
	if err != nil {
		return err
	}
	return res.Err()
}

// Peek returns what another take would now, and charges nothing. It asks the store each time. A
// policy without limits allows it.
func (l Limit) Peek() (Result, error) {
	if err := l.missing(); err != nil {
		return Result{}, err
	}
	t, n, err := l.keys.termsAndCost(l.ctx)
	if err != nil {
		return Result{}, err
	}
	return t.runMerged(l.ctx, Peek, n)
}

// Add charges n units more, 0 or more of them, each time and whatever the limits. If the store
// fails, some of several rules may be charged. The result's Count is that of the first rule over
// its Per, with the n units. The response's header does not count them.
func (l Limit) Add(n int64) (Result, error) {
	t, err := l.terms()
	if err != nil {
		return Result{}, err
	}
	res, err := t.runMerged(l.ctx, Add, n)
	_ = l.keys.count.Invalidate(l.ctx) // fails only if the request is over
	return res, err
}

// Count returns the units of the last Per of the request's first rule. It asks the store once for
// the request, and again after a charge or a refund. A rule that cannot count is [ErrNoCount].
func (l Limit) Count() (int64, error) {
	if err := l.missing(); err != nil {
		return 0, err
	}
	return l.keys.count.Get(l.ctx)
}

// CountIn returns the units of the last d, at most the first rule's span; more is
// [ErrInterval], and zero means the rule's Per. It asks the store each time.
func (l Limit) CountIn(d time.Duration) (int64, error) {
	t, err := l.terms()
	if err != nil {
		return 0, err
	}
	return t.countIn(l.ctx, d)
}

// Refund gives back the units that Take has charged, once: further calls return the same. It
// waits for the store even if the client leaves, for 5 seconds at most. It returns false if
// nothing was charged, or if the store no longer keeps the charge. Take goes on to return its
// result, and charges no more. The response's header shows the refund, unless it is out or a
// middleware has written it.
func (l Limit) Refund() (bool, error) {
	if err := l.missing(); err != nil {
		return false, err
	}
	c, err, taken := l.keys.take.Peek(l.ctx)
	if err != nil || !taken || !c.sum.Allowed {
		return false, err
	}
	return c.refund(l.ctx)
}
