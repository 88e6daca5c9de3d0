package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync"

	"github.com/lazyreq/lazyreq/reqctx"
)

// propertyKeys are the properties of a policy: the handle, and what takes time, so that
// it is shared, measured and can be waited for by name.
type propertyKeys struct {
	limit reqctx.Key[*Limit]  // ratelimit.NAME
	take  reqctx.Key[*charge] // ratelimit.NAME.take: the one charge of the request
	count reqctx.Key[int64]   // ratelimit.NAME.count: over the first rule's Per
}

var (
	first = reqctx.NewKey[*Limit]("ratelimit")

	// Property keys live as long as the process, so policies of one name in several
	// registries share theirs.
	keysByName = map[string]*propertyKeys{}
	keysMu     sync.RWMutex
)

func keysFor(name string) *propertyKeys {
	keysMu.Lock()
	defer keysMu.Unlock()
	k := keysByName[name]
	if k == nil {
		full := "ratelimit." + name
		k = &propertyKeys{
			limit: reqctx.NewKey[*Limit](full),
			take:  reqctx.NewKey[*charge](full + ".take"),
			count: reqctx.NewKey[int64](full + ".count"),
		}
		keysByName[name] = k
	}
	return k
}

func keysOf(name string) *propertyKeys {
	keysMu.RLock()
	defer keysMu.RUnlock()
	return keysByName[name]
}

// Provide registers the policies, with their counters in store. Each is the property
// "ratelimit.<name>", the first of them also "ratelimit"; their values are *[Limit].
// "ratelimit.<name>.take" is the charge of the request. An error names the policy and
// the field that is wrong; then nothing was registered.
//
// Call it once for a registry: like reqctx.Provide, it panics if a property of one of
// the names is there.
func Provide(reg *reqctx.Registry, store Store, policies ...Policy) error {
	switch {
	case reg == nil:
		return errors.New("ratelimit: Provide: registry is nil")
	case store == nil:
		return errors.New("ratelimit: Provide: store is nil")
	case len(policies) == 0:
		return errors.New("ratelimit: Provide: no policy")
	}
	seen := map[string]bool{}
	for _, p := range policies {
		if err := p.check(); err != nil {
			return err
		}
		if seen[p.Name] {
			return fmt.Errorf("ratelimit: two policies have the name %q", p.Name)
		}
		seen[p.Name] = true
	}
	reqctx.ProvideMemo(reg, refunds, refund)
	for i, p := range policies {
		newLimited(p, store).provide(reg, i == 0)
	}
	return nil
}

// limited is a policy with its store: what all requests share.
type limited struct {
	Policy
	store   Store
	storeID any // comparable, and equal for what is the same store
	one     func(context.Context, Op) (Result, error)
	keys    *propertyKeys
	handle  reqctx.Key[*Limit] // where the request's Limit is
	// policyLine is RateLimit-Policy for Rules; "" if it depends on the request.
	policyLine string
}

func newLimited(p Policy, store Store) *limited {
	p.Rules = slices.Clone(p.Rules)
	l := &limited{Policy: p, store: store, one: DoOne(store), keys: keysFor(p.Name)}
	l.handle = l.keys.limit
	l.storeID = l // no other has it
	if reflect.ValueOf(store).Comparable() {
		l.storeID = store
	}
	if !p.PartitionKey {
		l.policyLine = string(l.appendPolicies(nil, p.Rules, nil, ""))
	}
	return l
}

// same tells whether a charge by one is a charge by the other: same name, so same keys,
// same store and same rules.
func (p *limited) same(q *limited) bool {
	return p == q || p.Name == q.Name && p.storeID == q.storeID &&
		slices.Equal(p.Rules, q.Rules) && (p.RulesFor == nil) == (q.RulesFor == nil)
}

func (p *limited) provide(reg *reqctx.Registry, isFirst bool) {
	handle := reqctx.Prop[*Limit]{Handle: true, Resolve: p.resolveLimit}
	if isFirst { // which most ask for without a name
		p.handle = first
		reqctx.Provide(reg, first, handle)
		handle.Resolve = first.Get
	}
	reqctx.Provide(reg, p.keys.limit, handle)
	reqctx.Provide(reg, p.keys.take, reqctx.Prop[*charge]{Resolve: p.resolveTake, Commit: commit})
	reqctx.Provide(reg, p.keys.count, reqctx.Prop[int64]{Resolve: p.resolveCount})
}

func (p *limited) resolveLimit(ctx context.Context) (*Limit, error) {
	both := new(struct {
		Limit
		use
	})
	both.use.policy, both.use.pass = p, passageOf(ctx, p)
	if pass := both.use.pass; pass != nil {
		both.use.terms.Store(pass.terms)
	}
	both.Limit = Limit{ctx: ctx, home: ctx, use: &both.use}
	return &both.Limit, nil
}

// resolveTake charges the request, unless a middleware of the same policy has, on its
// way to the one whose property this is.
func (p *limited) resolveTake(ctx context.Context) (*charge, error) {
	l, err := p.handle.Get(ctx)
	if err != nil {
		return nil, err
	}
	if pass := l.use.pass; pass != nil {
		return pass.charge, pass.err
	}
	r, err := request(ctx)
	if err != nil {
		return nil, err
	}
	t, err := l.use.settle(ctx, r)
	if err != nil {
		return nil, err
	}
	c, err := t.take(ctx, r)
	// A count from before is the past. This fails only if the request is over.
	_ = p.keys.count.Invalidate(ctx)
	return c, err
}

func (p *limited) resolveCount(ctx context.Context) (int64, error) {
	l, err := p.handle.Get(ctx)
	if err != nil {
		return 0, err
	}
	r, err := request(ctx)
	if err != nil {
		return 0, err
	}
	t, err := l.use.settle(ctx, r)
	if err != nil {
		return 0, err
	}
	return t.countIn(ctx, 0)
}

func commit(_ context.Context, c *charge, h http.Header) error {
	if c.pass == nil {
		c.writeHeader(h)
	}
	return nil
}
