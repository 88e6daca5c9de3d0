package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/lazyreq/lazyreq/reqctx"
)

// boundPolicy is a policy with its store: what all requests share.
type boundPolicy struct {
	Policy
	store  Store
	keys   *propertyKeys
	handle reqctx.Key[*Limit] // where the request's Limit is
	// policyLine is RateLimit-Policy for Rules; "" if it depends on the request.
	policyLine string
}

func newBoundPolicy(p Policy, store Store) *boundPolicy {
	p.Rules = slices.Clone(p.Rules)
	b := &boundPolicy{Policy: p, store: store, keys: makeKeys(p.Name)}
	b.handle = b.keys.limit
	if !p.PartitionKey {
		b.policyLine = string(b.appendPolicies(nil, p.Rules, nil, ""))
	}
	return b
}

// provide registers the policy's properties. Its handle is also the property unnamed, unless
// that is nil.
func (p *boundPolicy) provide(reg *reqctx.Registry, unnamed *reqctx.Key[*Limit]) {
	make := p.resolveLimit
	if unnamed != nil {
		p.handle = *unnamed
		reqctx.ProvideState(reg, *unnamed, make)
		make = unnamed.Get
	}
	reqctx.ProvideState(reg, p.keys.limit, make)
	reqctx.Provide(reg, p.keys.take, reqctx.Prop[*charge]{Private: true, Resolve: p.resolveTake, Commit: writeHeader})
	reqctx.Provide(reg, p.keys.count, reqctx.Prop[int64]{Private: true, Resolve: p.resolveCount})
}

func (p *boundPolicy) resolveLimit(ctx context.Context) (*Limit, error) {
	both := new(struct {
		Limit
		requestState
	})
	both.requestState.policy = p
	both.Limit = Limit{ctx: ctx, state: &both.requestState}
	return &both.Limit, nil
}

// resolveTake charges the request.
func (p *boundPolicy) resolveTake(ctx context.Context) (*charge, error) {
	t, r, err := p.resolveTerms(ctx)
	if err != nil {
		return nil, err
	}
	n, err := p.cost(ctx, r)
	if err != nil {
		return nil, err
	}
	c := &charge{requestTerms: t}
	c.results, err = t.run(ctx, Take, n, c.one[:])
	// A count from before is the past. This fails only if the request is over.
	_ = p.keys.count.Invalidate(ctx)
	if err != nil {
		return nil, err
	}
	c.sum = t.merge(c.results)
	return c, nil
}

func (p *boundPolicy) resolveCount(ctx context.Context) (int64, error) {
	t, _, err := p.resolveTerms(ctx)
	if err != nil {
		return 0, err
	}
	return t.countIn(ctx, 0)
}

func (p *boundPolicy) resolveTerms(ctx context.Context) (*requestTerms, *http.Request, error) {
	l, err := p.handle.Get(ctx)
	if err != nil {
		return nil, nil, err
	}
	r, err := requestOf(ctx)
	if err != nil {
		return nil, nil, err
	}
	t, err := l.state.resolve(ctx, r)
	return t, r, err
}

// refunds are the request's, so that they need no slot for each policy. No policy can
// have its name.
var refunds = reqctx.NewMemo[*requestState, bool]("ratelimit.*.refund")

// String names the refund in errors.
func (s *requestState) String() string { return s.policy.Name }

// refundOnce gives back the charge, which its caller has seen.
func refundOnce(ctx context.Context, s *requestState) (bool, error) {
	keys := s.policy.keys
	c, err := keys.take.Get(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = keys.count.Invalidate(ctx) }() // fails only if the request is over
	return c.refund(ctx)
}

func (p *boundPolicy) do(ctx context.Context, ops []Op) ([]Result, error) {
	results, err := p.store.Do(ctx, ops)
	if err != nil {
		return nil, p.wrapStoreError(ctx, err)
	}
	return results, nil
}

func (p *boundPolicy) doOne(ctx context.Context, op Op) (Result, error) {
	res, err := p.store.DoOne(ctx, op)
	if err != nil {
		return Result{}, p.wrapStoreError(ctx, err)
	}
	return res, nil
}

// wrapStoreError adds the policy's name to a store's error. Any error but the end of the request and an
// op that the store has refused is a failure of the store.
func (p *boundPolicy) wrapStoreError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return err
	case !errors.Is(err, ErrStore) && !IsOpError(err):
		err = fmt.Errorf("%w: %w", ErrStore, err)
	}
	return p.wrapError(err)
}
