package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/lazyreq/lazyreq/reqctx"
)

// propertyKeys are the properties of a policy, "ratelimit.<name>" and what it reads.
type propertyKeys struct {
	limit  reqctx.Key[*Limit]
	key    reqctx.Key[string]   // ….key: the subject
	take   reqctx.Key[*charge]  // ….take: the one charge of the request
	count  reqctx.Key[int64]    // ….count: over the first rule's Per
	refund reqctx.Key[[]Result] // ….refund: the one refund of the charge
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
			limit:  reqctx.NewKey[*Limit](full),
			key:    reqctx.NewKey[string](full + ".key"),
			take:   reqctx.NewKey[*charge](full + ".take"),
			count:  reqctx.NewKey[int64](full + ".count"),
			refund: reqctx.NewKey[[]Result](full + ".refund"),
		}
		keysByName[name] = k
	}
	return k
}

// Provide registers the policies, with their counters in store. Each is the property
// "ratelimit.<name>", the first of them also "ratelimit"; their values are *[Limit].
// An error names the policy and the field that is wrong; then nothing was registered.
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
	for i, p := range policies {
		p.Rules = append([]Rule(nil), p.Rules...)
		l := newLimited(p, store)
		l.provide(reg)
		if i == 0 {
			reqctx.Provide(reg, first, reqctx.Prop[*Limit]{Handle: true, Resolve: l.keys.limit.Get})
		}
	}
	return nil
}

// From returns the limit of ctx's request by the policy's name, by default the first
// policy's. It does no I/O. It fails if ctx has no request, the request is over, or
// there is no such policy; the limit isn't nil then, and its methods return the error.
func From(ctx context.Context, name ...string) (*Limit, error) {
	key := first
	if len(name) > 0 {
		keysMu.RLock()
		k := keysByName[name[0]]
		keysMu.RUnlock()
		if k == nil {
			// No registry has it: the error says what this one has.
			_, err := reqctx.Get(ctx, "ratelimit."+name[0])
			return &Limit{err: err}, err
		}
		key = k.limit
	}
	l, err := key.Get(ctx)
	if err != nil {
		return &Limit{err: err}, err
	}
	if ctx == l.ctx {
		return l, nil
	}
	// The caller's own context knows which property asks, and when the caller leaves.
	return &Limit{ctx: ctx, policy: l.policy}, nil
}

// limited is a policy with its store: what the properties of all requests share.
type limited struct {
	Policy
	store Store
	keys  *propertyKeys
	// policyItems are the members of RateLimit-Policy, one for each rule.
	policyItems []string
}

func newLimited(p Policy, store Store) *limited {
	l := &limited{Policy: p, store: store, keys: keysFor(p.Name)}
	for _, r := range p.Rules {
		l.policyItems = append(l.policyItems, p.policyItem(r))
	}
	return l
}

func (p *limited) provide(reg *reqctx.Registry) {
	reqctx.Provide(reg, p.keys.limit, reqctx.Prop[*Limit]{
		Handle: true,
		Resolve: func(ctx context.Context) (*Limit, error) {
			return &Limit{ctx: ctx, policy: p}, nil
		},
	})
	reqctx.Provide(reg, p.keys.key, reqctx.Prop[string]{Resolve: p.resolveKey})
	reqctx.Provide(reg, p.keys.take, reqctx.Prop[*charge]{Resolve: p.resolveTake, Commit: p.commit})
	reqctx.Provide(reg, p.keys.count, reqctx.Prop[int64]{
		Resolve: func(ctx context.Context) (int64, error) { return p.countIn(ctx, 0) },
	})
	reqctx.Provide(reg, p.keys.refund, reqctx.Prop[[]Result]{Resolve: p.resolveRefund})
}

func (p *limited) resolveKey(ctx context.Context) (string, error) {
	r, err := request(ctx)
	if err != nil {
		return "", err
	}
	return p.subject(ctx, r)
}

// request returns the HTTP request of ctx. A raw connection has none: its place takes
// one that has only the peer's address.
func request(ctx context.Context) (*http.Request, error) {
	c := reqctx.From(ctx)
	switch {
	case c == nil || c.Request() == nil && c.RemoteAddr() == "":
		return nil, fmt.Errorf("%w: neither an HTTP request nor a connection", ErrNoKey)
	case c.Request() == nil:
		return &http.Request{RemoteAddr: c.RemoteAddr(), Header: http.Header{}, URL: &url.URL{}}, nil
	default:
		return c.Request(), nil
	}
}
