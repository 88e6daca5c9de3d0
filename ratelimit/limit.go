package ratelimit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/reqctx"
)

// Limit charges and counts a request under its only policy, for programs that have only one policy. [From] makes it. The zero
// Limit has no policy, so its methods return an error.
type Limit struct {
	ctx      context.Context
	policies []*Policy // the request's own policies, and then the policies of requests around it
	own      int       // the number of the request's own policies
	err      error     // the reason if there are no policies; nil in the zero Limit
}

var limits = reqctx.NewKey[Limit]("ratelimit")

// provideLimit adds the property "ratelimit" to a registry that has the policies.
func provideLimit(reg *reqctx.Registry, policies []*Policy) {
	reqctx.ProvideState(reg, limits, func(ctx context.Context) (Limit, error) {
		all := slices.Clip(policies)
		var outer Limit
		if c := reqctx.From(reqctx.From(ctx).Context); c != nil {
			outer, _ = limits.Get(c) // if this fails, outer has no policies
		}
		for _, p := range outer.policies {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
		return Limit{ctx: ctx, policies: all, own: len(policies)}, nil
	})
}

// From returns the limit of the only policy that ctx's request has, from its server ([Provide]) or from a [Middleware]
// around the handler. It does no I/O. It returns an error if ctx has no request, the request is over, or there is no
// policy or more than one. The limit's methods then return that error, too.
func From(ctx context.Context) (Limit, error) {
	l, err := limits.Get(ctx)
	if err != nil {
		return Limit{err: err}, err
	}
	l.ctx = ctx
	_, err = l.policy()
	return l, err
}

var errZeroLimit = option.WithText("ratelimit: the zero Limit has no policy", reqctx.ErrNoProperty)

// policy returns the only policy, or an error.
func (l Limit) policy() (*Policy, error) {
	switch len(l.policies) {
	case 0:
		return nil, cmp.Or(l.err, errZeroLimit)
	case 1:
		return l.policies[0], nil
	}
	var names []string
	for _, p := range l.policies {
		names = append(names, p.Name)
	}
	text := fmt.Sprintf("ratelimit: the request has several policies (%s): call the methods of one of them", strings.Join(names, ", "))
	return nil, option.WithText(text, reqctx.ErrNoProperty)
}

// Take calls [Policy.Take] of the only policy.
func (l Limit) Take() (Result, error) {
	p, err := l.policy()
	if err != nil {
		return Result{}, err
	}
	return p.Take(l.ctx)
}

// Require calls Take, and returns a denial as an error, as [Policy.Require] does.
func (l Limit) Require() error {
	res, err := l.Take()
	if err != nil {
		return err
	}
	return res.Err()
}

// Count is [Policy.Count].
func (l Limit) Count() (int64, error) {
	p, err := l.policy()
	if err != nil {
		return 0, err
	}
	return p.Count(l.ctx)
}
