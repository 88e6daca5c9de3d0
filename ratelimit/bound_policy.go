package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/reqctx"
)

// propertyKeys are the properties of the policies with one name. Only a [Limit] reaches them.
// Keys live as long as the process, so policies with one name in several registries share them.
type propertyKeys struct {
	policy string
	bound  reqctx.Key[*boundPolicy] // ratelimit.NAME.policy: the request's policy with this name
	terms  reqctx.Key[terms]        // ratelimit.NAME.key
	take   reqctx.Key[*charge]      // ratelimit.NAME.take: the one charge of the request
	count  reqctx.Key[int64]        // ratelimit.NAME.count: over the first rule's Per
}

var (
	keysByPolicy = map[string]*propertyKeys{}
	keysByTake   = map[string]*propertyKeys{} // by the name of the property
	keysMu       sync.RWMutex
)

func findKeys(in map[string]*propertyKeys, name string) *propertyKeys {
	keysMu.RLock()
	defer keysMu.RUnlock()
	return in[name]
}

func makeKeys(policy string) *propertyKeys {
	keysMu.Lock()
	defer keysMu.Unlock()
	k := keysByPolicy[policy]
	if k == nil {
		name := "ratelimit." + policy
		k = &propertyKeys{
			policy: policy,
			bound:  reqctx.NewKey[*boundPolicy](name + ".policy"),
			terms:  reqctx.NewKey[terms](name + ".key"),
			take:   reqctx.NewKey[*charge](name + ".take"),
			count:  reqctx.NewKey[int64](name + ".count"),
		}
		keysByPolicy[policy], keysByTake[k.take.Name()] = k, k
	}
	return k
}

// boundPolicy is a policy with its store: what all requests share.
type boundPolicy struct {
	Policy
	store Store
	keys  *propertyKeys

	policyLine string // RateLimit-Policy for Rules; "" if it depends on the request
}

func newBoundPolicy(p Policy, store Store) *boundPolicy {
	p.Rules = slices.Clone(p.Rules)
	b := &boundPolicy{Policy: p, store: store, keys: makeKeys(p.Name)}
	if !p.PartitionKey {
		b.policyLine = string(b.appendPolicies(nil, p.Rules, nil, ""))
	}
	return b
}

// Provide registers the policies, with their counters in store. The property "ratelimit" is the
// [Limit] of the first. Observers and measurements see the private properties
// "ratelimit.<name>.key", which finds the request's key and rules, "ratelimit.<name>.take", which
// charges the request, and "ratelimit.<name>.count".
//
// It panics if the registry or the store is nil, if [Check] returns an error, or if a property of
// one of the names exists. Limits cannot be preset in tests: there, provide a memory store.
func Provide(reg *reqctx.Registry, store Store, policies ...Policy) {
	if reg == nil {
		panic("ratelimit: Provide: registry is nil")
	} else if option.IsNil(store) {
		panic("ratelimit: Provide: store is nil")
	} else if err := Check(policies...); err != nil {
		panic(err)
	}
	for i, p := range policies {
		b := newBoundPolicy(p, store)
		if i == 0 {
			reqctx.ProvideState(reg, firstLimit, b.limit)
		}
		b.provide(reg)
	}
}

func (p *boundPolicy) provide(reg *reqctx.Registry) {
	reqctx.ProvideState(reg, p.keys.bound, func(context.Context) (*boundPolicy, error) { return p, nil })
	reqctx.Provide(reg, p.keys.terms, reqctx.Prop[terms]{Private: true, Resolve: p.resolveTerms})
	reqctx.Provide(reg, p.keys.take, reqctx.Prop[*charge]{Private: true, Resolve: p.resolveTake, Commit: writeHeader})
	reqctx.Provide(reg, p.keys.count, reqctx.Prop[int64]{Private: true, Resolve: p.resolveCount})
}

func (p *boundPolicy) limit(ctx context.Context) (Limit, error) {
	return Limit{ctx: ctx, keys: p.keys}, nil
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
	return terms{p, subject, rules}, nil
}

func (p *boundPolicy) resolveTake(ctx context.Context) (*charge, error) {
	t, n, err := p.keys.termsAndCost(ctx)
	if err != nil {
		return nil, err
	}
	c := &charge{terms: t}
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
	t, err := p.keys.terms.Get(ctx)
	if err != nil {
		return 0, err
	}
	return t.countIn(ctx, 0)
}

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

// requestOf returns the HTTP request of ctx. For a raw connection, that has only the peer's address.
func requestOf(ctx context.Context) *http.Request {
	c := reqctx.From(ctx)
	if r := c.Request(); r != nil {
		return r
	}
	return &http.Request{RemoteAddr: c.RemoteAddr(), Header: http.Header{}, URL: &url.URL{}}
}

// wrapStoreError adds the policy's name to a store's error, and ErrStore unless the request has
// ended or the store has refused the op.
func (p *boundPolicy) wrapStoreError(ctx context.Context, err error) error {
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case !errors.Is(err, ErrStore) && !IsOpError(err):
		err = fmt.Errorf("%w: %w", ErrStore, err)
	}
	return p.wrapError(err)
}
