package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/reqctx"
)

// propertyKeys holds the keys of a policy's properties, which are the same in every registry. Keys live as long as
// the process, so a policy makes them only once.
type propertyKeys struct {
	of    *Policy             // the policy that made them, to detect copies
	terms reqctx.Key[terms]   // ratelimit.NAME.key
	take  reqctx.Key[*charge] // ratelimit.NAME.take: the request's charge
	count reqctx.Key[int64]   // ratelimit.NAME.count: over the first rule's Per
}

// propertyKeys returns p's keys, which it makes on first use.
func (p *Policy) propertyKeys() *propertyKeys {
	k := p.keys.Load()
	if k != nil && k.of == p {
		return k
	}
	name := p.String()
	p.keys.CompareAndSwap(k, &propertyKeys{ // if two goroutines make them, one result is kept
		of:    p,
		terms: reqctx.NewKey[terms](name + ".key"),
		take:  reqctx.NewKey[*charge](name + ".take"),
		count: reqctx.NewKey[int64](name + ".count"),
	})
	return p.keys.Load()
}

// boundPolicy is a copy of a policy, with its store.
type boundPolicy struct {
	Policy
	of         *Policy // the original, whose property keys the copy uses
	store      Store
	policyLine string // the value of the field RateLimit-Policy for Rules
}

// bind copies the fields of p, because the caller may change them later, while requests use the copy.
func bind(p *Policy, store Store) *boundPolicy {
	return &boundPolicy{of: p, store: observedBy(p.Name, store), policyLine: string(p.appendPolicies(nil, p.Rules, nil)), Policy: Policy{
		Name: p.Name, Rules: slices.Clone(p.Rules), RulesFor: p.RulesFor, Key: p.Key, Fallback: p.Fallback,
		Cost: p.Cost, Settle: p.Settle, Unit: p.Unit, Headers: p.Headers,
	}}
}

func (p *boundPolicy) propertyKeys() *propertyKeys { return p.of.propertyKeys() }

// Provide registers the policies, with their counters in store. The property "ratelimit" is the [Limit] that [From]
// returns. Observers and measurements see the private properties "ratelimit.<name>.key", which finds the request's key
// and rules, "ratelimit.<name>.take", which charges the request, and "ratelimit.<name>.count".
//
// It panics if the registry or the store is nil, if [Check] returns an error, or if the registry already has a
// property with one of these names. Limits cannot be preset in tests. Provide a memory store instead.
func Provide(reg *reqctx.Registry, store Store, policies ...*Policy) {
	if reg == nil {
		panic("ratelimit: Provide: registry is nil")
	} else if option.IsNil(store) {
		panic("ratelimit: Provide: store is nil")
	} else if err := Check(policies...); err != nil {
		panic(err)
	}
	provideLimit(reg, slices.Clone(policies))
	for _, p := range policies {
		bind(p, store).provide(reg)
	}
}

func (p *boundPolicy) provide(reg *reqctx.Registry) {
	k, commit := p.propertyKeys(), writeHeader
	if p.Settle != nil {
		commit = settle
	}
	reqctx.Provide(reg, k.terms, reqctx.Prop[terms]{Private: true, Resolve: p.resolveTerms})
	reqctx.Provide(reg, k.take, reqctx.Prop[*charge]{Private: true, Resolve: p.resolveTake, Commit: commit})
	reqctx.Provide(reg, k.count, reqctx.Prop[int64]{Private: true, Resolve: p.resolveCount})
}

// resolveTerms finds the key and the rules of the request.
func (p *boundPolicy) resolveTerms(ctx context.Context) (terms, error) {
	if c := reqctx.From(ctx); c.Request() == nil && c.RemoteAddr() == "" {
		return terms{}, p.wrapError(ErrNoKey)
	}
	r := requestOf(ctx)
	subject, err := p.subject(ctx, r)
	if err != nil {
		return terms{}, err
	}
	rules, err := p.rulesFor(ctx, r)
	if err != nil {
		return terms{}, err
	}
	return terms{p, subject, rules, storeOf(p.store, rules)}, nil
}

func (p *boundPolicy) resolveTake(ctx context.Context) (*charge, error) {
	t, n, err := p.propertyKeys().termsAndCost(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(t.rules, Rule.concurrent) { // the receipt is needed even if the client leaves now
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTime)
		defer cancel()
		ctx = limited
	}
	res, err := t.run(ctx, t.op(Take, n))
	_ = p.propertyKeys().count.Invalidate(ctx) // fails only if the request is over
	if err != nil {
		return nil, err
	}
	c := &charge{terms: t, res: res}
	if held := c.removeHeld(); len(held) > 0 {
		request := reqctx.From(ctx)
		request.OnClose(func() error { return p.release(request, held) })
	}
	return c, nil
}

func (p *boundPolicy) resolveCount(ctx context.Context) (int64, error) { return p.of.CountIn(ctx, 0) }

// termsAndCost returns the request's terms, and its cost in units.
func (k *propertyKeys) termsAndCost(ctx context.Context) (terms, int64, error) {
	t, err := k.terms.Get(ctx)
	if err != nil {
		return terms{}, 0, err
	}
	p := t.policy
	if p.Cost == nil {
		return t, 1, nil
	}
	n, err := p.Cost(ctx, requestOf(ctx))
	if err == nil && n < 1 {
		err = fmt.Errorf("ratelimit: Cost returned %d, want at least 1", n)
	}
	if err != nil {
		return terms{}, 0, p.wrapError(err)
	}
	return t, n, nil
}

// requestOf returns the HTTP request of ctx. For a raw connection, it returns a request that has only the peer's address.
func requestOf(ctx context.Context) *http.Request {
	c := reqctx.From(ctx)
	if r := c.Request(); r != nil {
		return r
	}
	return &http.Request{RemoteAddr: c.RemoteAddr(), Header: http.Header{}, URL: &url.URL{}}
}

// wrapStoreError adds the policy's name to an error of the store. It also wraps the error in ErrStore, unless the store has
// refused the op. If the request has ended, it returns err unchanged.
func (p *boundPolicy) wrapStoreError(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case !errors.Is(err, ErrStore) && !IsOpError(err):
		err = fmt.Errorf("%w: %w", ErrStore, err)
	}
	return p.wrapError(err)
}
