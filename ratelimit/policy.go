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

// Policy defines the limits of requests and the key by which requests are counted. Make policies once, in
// package-level variables:
//
//	var Search = ratelimit.NewPolicy("search", ratelimit.ByIP(), ratelimit.PerMinute(5))
//
// Give them to a server, [Provide] or [Middleware]. These copy the fields, so later changes have no effect. Then call
// the methods with the context of a request: a *server.Request, or the context of an [http.Request] that the server
// or the middleware handles. They return an error if the request's key (ErrNoKey), rules or cost (ErrTooLarge) cannot
// be found, if the store fails (ErrStore), or if the request does not have the policy ([reqctx.ErrNoProperty]). They
// are safe for concurrent use.
//
// A policy is identified by its pointer. A Middleware inside a server uses the server's charge if both have the same
// pointer. A copy of a Policy is a different policy. The Name must not change after the first use.
type Policy struct {
	// Name is part of property names, headers and keys in the store: letters, digits, "-" and "_", at most 64 of them.
	Name string
	// Rules are the limits. A request is charged under all rules if all of them allow it, and otherwise under none.
	// Several rules need different names, which Rules with different Pers have; see [Rule.WithName]. A policy whose
	// only rule has no limit is a meter: its takes are never denied and send no header fields.
	Rules []Rule
	// RulesFor chooses the rules for one request in place of Rules, for example by the caller's plan, or with
	// Rule.WithLimit and a number from the caller's contract. Each rule needs a limit, so that a 0 from a database is
	// an error and not a meter. If the result is nil, Rules apply; Rules may be empty if the result is never nil.
	// Like Key, RulesFor is called once for a request. Its result must not change afterwards.
	RulesFor func(ctx context.Context, r *http.Request) ([]Rule, error)
	// Key returns the text by which a request is counted. It is required; [ByIP], [ByHeader], [ByProperty] and others
	// make one. It is called once for a request, and its result is kept, even if it is an error. So if it returned
	// ErrNoKey before a login, the policy's methods return ErrNoKey for the rest of the request.
	Key KeyFunc
	// Fallback is called if Key returns ErrNoKey. Its keys are different from the keys of Key, even if the texts are
	// equal. If Fallback is nil, such a request gets a 400.
	Fallback KeyFunc
	// Cost returns how many units a request costs. Nil means 1. A cost above a limit is ErrTooLarge. A cost below 1
	// is an error and is answered with a 500.
	Cost func(ctx context.Context, r *http.Request) (int64, error)
	// Settle reports whether a response with this status keeps the charge. If it returns false, the charge is refunded
	// before the header goes out, and the RateLimit fields show that. Requests are charged before the handler runs, so
	// parallel requests cannot exceed the limit. The charge also stays if the header goes out before the take, if the
	// client has left, if the handler panics or tries to hijack the connection, if Settle panics, if the refund fails
	// (see [Policy.Refund]), or if a failover has allowed the request. Units of [Policy.Add] stay, too. Nil keeps all
	// charges.
	//
	// If a handler of package server returns an error, a policy of the server gets the status of the error, even if
	// WriteProblem redirects. A [Middleware] gets the status that is sent. Settle is not called again if the response
	// changes afterwards, because the session cannot be saved.
	Settle func(status int) bool

	// Unit names the unit if it is not a request, for example "content-bytes". It becomes the parameter qu of
	// RateLimit-Policy. It may have the same characters as Name.
	Unit string
	// Headers selects the header fields that describe the limits. The zero value means HeadersDraft10.
	Headers HeaderFields

	keys atomic.Pointer[propertyKeys] // nil until the first use
}

// NewPolicy returns a policy that counts requests by key, and allows a request if all rules allow it. It does not
// check its arguments; [Check] and a server do. Set other fields before a server gets the policy, or write a literal,
// &ratelimit.Policy{…}.
func NewPolicy(name string, key KeyFunc, rules ...Rule) *Policy {
	return &Policy{Name: name, Key: key, Rules: rules}
}

// String returns "ratelimit." and the policy's name, with which the names of its properties begin.
func (p *Policy) String() string { return "ratelimit." + p.Name }

// wrapError adds the policy's name to err.
func (p *Policy) wrapError(err error) error {
	return option.Prefix(fmt.Sprintf("ratelimit: policy %q: ", p.Name), "ratelimit", err)
}

// Check returns an error, which names the policy and the field, if [Provide] would refuse the policies. It does so if
// there are no policies, if one is nil, if two have the same name, or if a field or a rule is invalid.
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
	switch {
	case len(p.Rules) == 0 && p.RulesFor == nil:
		err = errors.New("ratelimit: Rules is empty")
	case p.Key == nil:
		err = errors.New("ratelimit: Key is nil")
	case p.Unit != "" && !option.ValidName(p.Unit):
		err = fmt.Errorf("ratelimit: Unit is %q, want %s", p.Unit, option.NameSyntax)
	case p.Headers > HeadersNone:
		err = fmt.Errorf("ratelimit: Headers is %d, want a constant such as HeadersNone", p.Headers)
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
