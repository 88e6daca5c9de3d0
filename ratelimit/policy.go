package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/lazyreq/lazyreq/internal/netaddr"
	"github.com/lazyreq/lazyreq/internal/option"
)

// Policy defines the key by which requests are counted, and their limits. Make policies once, in package-level
// variables:
//
//	var Search = ratelimit.NewPolicy("search", ratelimit.ByIP(), ratelimit.PerMinute(5))
//
// Give them to a server, [Provide] or [Middleware], which copy the fields: later changes have no effect. Then call the
// methods with the context of a request: a *server.Request, or the context of an [http.Request] that the server or the
// middleware handles. They return the errors of finding the request's key (ErrNoKey), its rules and its cost
// (ErrTooLarge), those of the store (ErrStore), and [reqctx.ErrNoProperty] if the request does not have the policy.
// They are safe for concurrent use.
//
// A policy is identified by its pointer: a Middleware within a server that has the same pointer uses the server's charge.
// A copy of a Policy is another policy. The Name must not change after the first use.
type Policy struct {
	// Name is part of property names, headers and keys in the store: letters, digits, "-" and "_", at most 64 of them.
	Name string
	// Rules are the limits. A request is charged by all of them if all allow it, otherwise by none. Two rules with the
	// same Per need different names, see [Rule.WithName]. A rule without a limit counts the units that the others
	// allow, in a second call of the store. A policy that has no other rules is a meter: its takes are never denied
	// and send no header fields.
	Rules []Rule
	// RulesFor chooses the rules of one request, in place of Rules: those of the caller's plan, or Rule.WithLimit with
	// the number in the caller's contract. Each needs a limit, so that a 0 from a database is an error and not a
	// meter. Nil rules mean Rules, which may be empty if there is always another choice. RulesFor is called as Key is.
	// Its result must not change afterwards.
	RulesFor func(ctx context.Context, r *http.Request) ([]Rule, error)
	// Key returns the text by which a request is counted. It is required; [ByIP], [ByHeader], [ByProperty] and others
	// make one. It is called once for a request, and its result is kept, also if it is an error: after ErrNoKey before
	// a login, the policy's methods return ErrNoKey in the rest of the request.
	Key KeyFunc
	// Fallback is asked if Key returns ErrNoKey. Its keys differ from those of Key, even if they read the same. Nil
	// means that such a request is an error, which becomes a 400.
	Fallback KeyFunc
	// Cost returns how many units a request costs. Nil means 1. More than a limit is ErrTooLarge. Less than 1 is
	// answered 500, because it would pass whatever the limits are.
	Cost func(ctx context.Context, r *http.Request) (int64, error)

	// Unit names a unit that is not a request, such as "content-bytes": the parameter qu of RateLimit-Policy. It has
	// the same characters as Name.
	Unit string
	// PartitionKey also sends the parameter pk, which identifies one of a client's quotas: 72 bits of a hash of the
	// request's key. Clients can check guesses of the key with it.
	PartitionKey bool
	// XHeaders also sends X-RateLimit-Limit, -Remaining and -Reset (in seconds from now). If several policies do, the
	// one with the least left sets them.
	XHeaders bool

	keys atomic.Pointer[propertyKeys] // nil until the first use
}

// NewPolicy returns a policy that allows a request if all rules do, counted by key. It checks nothing: a server and
// [Check] do. Set other fields before a server gets the policy, or write a literal, &ratelimit.Policy{…}.
func NewPolicy(name string, key KeyFunc, rules ...Rule) *Policy {
	return &Policy{Name: name, Key: key, Rules: rules}
}

// String returns "ratelimit." and the policy's name, with which the names of its properties begin.
func (p *Policy) String() string { return "ratelimit." + p.Name }

// wrapError adds the policy's name to err.
func (p *Policy) wrapError(err error) error {
	return option.Prefix(fmt.Sprintf("ratelimit: policy %q: ", p.Name), "ratelimit", err)
}

// Check returns the error with which [Provide] would refuse the policies, which names the policy and the field: there
// are none, one is nil, two have the same name, or a field or a rule is invalid.
func Check(policies ...*Policy) error {
	if len(policies) == 0 {
		return errors.New("ratelimit: no policy")
	}
	seen := map[string]bool{}
	for i, p := range policies {
		if p == nil {
			return fmt.Errorf("ratelimit: policy %d is nil", i)
		}
		if err := p.check(); err != nil {
			return err
		}
		if seen[p.Name] {
			return fmt.Errorf("ratelimit: two policies have the name %q", p.Name)
		}
		seen[p.Name] = true
	}
	return nil
}

func (p *Policy) check() error {
	if !option.ValidName(p.Name) {
		return fmt.Errorf("ratelimit: Policy.Name is %q, want %s", p.Name, option.NameSyntax)
	}
	err := checkRules("Rules", p.Rules)
	k := p.keys.Load()
	switch {
	case k != nil && k.of == p && k.name != p.Name:
		err = fmt.Errorf("its Name was %q when it was first used", k.name)
	case len(p.Rules) == 0 && p.RulesFor == nil:
		err = errors.New("Rules is empty")
	case p.Key == nil:
		err = errors.New("Key is nil")
	case p.Unit != "" && !option.ValidName(p.Unit):
		err = fmt.Errorf("ratelimit: Unit is %q, want %s", p.Unit, option.NameSyntax)
	}
	if err != nil {
		return p.wrapError(err)
	}
	return nil
}

// rulesFor returns the rules of one request.
func (p *Policy) rulesFor(ctx context.Context, r *http.Request) ([]Rule, error) {
	if p.RulesFor == nil {
		return p.Rules, nil
	}
	rules, err := p.RulesFor(ctx, r)
	switch {
	case err == nil && len(rules) == 0 && len(p.Rules) > 0:
		return p.Rules, nil
	case err == nil && len(rules) == 0:
		err = errors.New("RulesFor returned no rules, and there are no others")
	case err == nil:
		err = checkRules("RulesFor", rules)
	}
	for i, r := range rules {
		if err == nil && r.Limit() == 0 {
			err = option.WithText(fmt.Sprintf("RulesFor[%d] has no limit: %v", i, r), ErrNoLimit)
		}
	}
	if err != nil {
		return nil, p.wrapError(err)
	}
	return rules, nil
}

// quotaName returns the name of a rule of the policy in headers and problems. It is the policy's name alone if the
// rule is its only one and was not given a name.
func (p *Policy) quotaName(r Rule, only bool) string {
	if only && !r.Layout().Named {
		return p.Name
	}
	return p.Name + "." + r.Name()
}

// subject returns the request's key in the store. A policy's name contains neither ":" nor "~".
func (p *Policy) subject(ctx context.Context, r *http.Request) (string, error) {
	keys := &keyContext{Context: ctx}
	key, err := p.Key(keys, r)
	by := ":"
	if p.Fallback != nil && (errors.Is(err, ErrNoKey) || err == nil && key == "") {
		key, err = p.Fallback(keys, r)
		by = "~"
	}
	if err == nil && key == "" {
		err = ErrNoKey
	}
	if err != nil {
		return "", p.wrapError(err)
	}
	return p.Name + by + keys.storeForm(key), nil
}

// keyContext is the context of a policy's key functions. It records the key that [IPOptions] has made of an address,
// because other keys that read like an address are encoded differently.
type keyContext struct {
	context.Context
	mu      sync.Mutex
	address string // the last such key, or ""
}

type keyContextKey struct{}

// Value returns k for keyContextKey.
func (k *keyContext) Value(key any) any {
	if _, ok := key.(keyContextKey); ok {
		return k
	}
	return k.Context.Value(key)
}

// noteAddressKey records a key that was made of an address.
func noteAddressKey(ctx context.Context, key string) {
	if k, ok := ctx.Value(keyContextKey{}).(*keyContext); ok {
		k.mu.Lock()
		k.address = key
		k.mu.Unlock()
	}
}

const (
	maxSubjectLen = 128     // longer keys are hashed
	longKey       = "long-" // begins the hash of a long key
	escapedKey    = "="     // begins a key that could be mistaken for a hash, an address or an escaped key
)

// storeForm returns the encoding of a key in the store: the hash of a long key, the key of an address, or any other
// key. Different keys have different encodings.
func (k *keyContext) storeForm(key string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case len(key) > maxSubjectLen:
		return longKey + hashParts(key)
	case strings.HasPrefix(key, longKey), strings.HasPrefix(key, escapedKey),
		key != k.address && netaddr.ParsePrefix(key).IsValid():
		return escapedKey + key
	}
	return key
}
