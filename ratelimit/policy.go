package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/lazyreq/lazyreq/internal/errtext"
	"github.com/lazyreq/lazyreq/internal/names"
	"github.com/lazyreq/lazyreq/ratelimit/internal/addrkey"
)

// Policy defines what requests are counted by and their limits.
type Policy struct {
	// Name is part of property names, headers and keys in the store: letters, digits,
	// "-" and "_", at most 64 of them.
	Name string
	// Rules all have to allow a request; it is charged to all or to none. Two of one Per need
	// different names, see [Rule.WithName]. A rule without a limit counts what the others have
	// let through, in a second call of the store. A policy that has no other rules is a meter:
	// its takes are never denied and send no headers. (A count beyond 2^53 is ErrOverflow.)
	Rules []Rule
	// RulesFor chooses the rules of one request, in place of Rules: those of the
	// caller's plan, or Rule.WithLimit of the number in the caller's contract. Each
	// needs a limit, so that a 0 from a database is an error and not a meter; nil
	// means Rules, which may then be empty if there is always another choice. It is
	// called as Key is. What it returns must not change afterwards.
	RulesFor func(ctx context.Context, r *http.Request) ([]Rule, error)
	// Key returns what a request is counted by. It must be chosen: see [ByIP].
	Key KeyFunc
	// Fallback is asked when Key finds nothing (ErrNoKey). Its keys are never those of
	// Key, even if they read the same. Nil means that such a request is an error, which
	// becomes a 400.
	Fallback KeyFunc
	// Cost returns how many units a request costs. Nil means 1. More than a limit is
	// ErrTooLarge, less than 1 a fault of the function: such a request would pass whatever
	// the limits, so it is answered 500.
	Cost func(ctx context.Context, r *http.Request) (int64, error)

	// Unit is what a unit is, if it isn't a request, such as "content-bytes": the
	// parameter qu of RateLimit-Policy. It is made of the same characters as Name.
	Unit string
	// PartitionKey also sends the parameter pk, which identifies
	// one of a client's quotas (one for each of its API keys, say): 72 bits of a
	// hash of the request's key. A guess of the key can be checked with it.
	PartitionKey bool
	// XHeaders also sends X-RateLimit-Limit, -Remaining and -Reset (in seconds from
	// now). If several policies do, they are those of the one with the least left.
	XHeaders bool
}

// NewPolicy returns a policy that allows what all rules allow, counted by key. Its other fields
// can be set afterwards. Whatever is given the policy returns what is wrong with it.
func NewPolicy(name string, key KeyFunc, rules ...Rule) Policy {
	return Policy{Name: name, Key: key, Rules: rules}
}

// wrapError adds the policy's name to err.
func (p *Policy) wrapError(err error) error {
	return errtext.Prefix(fmt.Sprintf("ratelimit: policy %q: ", p.Name), "ratelimit", err)
}

// Check returns an error if Provide refuses the policies: if there are none, if two have one name,
// or if a field or a rule is wrong. The error names the policy and the field.
func Check(policies ...Policy) error {
	if len(policies) == 0 {
		return errors.New("ratelimit: no policy")
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
	return nil
}

// check returns what is wrong with the policy itself.
func (p *Policy) check() error {
	switch {
	case !names.Valid(p.Name):
		return fmt.Errorf("ratelimit: Policy.Name is %q, want %s", p.Name, names.Rule)
	case len(p.Rules) == 0 && p.RulesFor == nil:
		return fmt.Errorf("ratelimit: policy %q: Rules is empty", p.Name)
	case p.Key == nil:
		return fmt.Errorf("ratelimit: policy %q: Key is nil", p.Name)
	case p.Unit != "" && !names.Valid(p.Unit):
		return fmt.Errorf("ratelimit: policy %q: Unit is %q, want %s", p.Name, p.Unit, names.Rule)
	}
	if err := checkRules("Rules", p.Rules); err != nil {
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
	case err != nil:
		return nil, p.wrapError(err)
	case len(rules) == 0 && len(p.Rules) == 0:
		return nil, fmt.Errorf("ratelimit: policy %q: RulesFor returned no rules, and there are no others", p.Name)
	case len(rules) == 0:
		return p.Rules, nil
	}
	if err := checkRules("RulesFor", rules); err != nil {
		return nil, p.wrapError(err)
	}
	for i, r := range rules {
		if r.Limit() == 0 {
			return nil, errtext.New(fmt.Sprintf("ratelimit: policy %q: RulesFor[%d] has no limit: %v", p.Name, i, r), ErrNoLimit)
		}
	}
	return rules, nil
}

// quotaName returns the name of a rule of the policy in headers and problems: the policy's alone, if
// the rule is its only one and has no chosen name.
func (p *Policy) quotaName(r Rule, only bool) string {
	if only && !r.Layout().Named {
		return p.Name
	}
	return p.Name + "." + r.Name()
}

func (p *Policy) cost(ctx context.Context, r *http.Request) (int64, error) {
	if p.Cost == nil {
		return 1, nil
	}
	n, err := p.Cost(ctx, r)
	switch {
	case err != nil:
		return 0, p.wrapError(err)
	case n < 1:
		return 0, fmt.Errorf("ratelimit: policy %q: Cost returned %d, want at least 1", p.Name, n)
	}
	return n, nil
}

// subject returns the key in the store of what the request is counted by. The name
// contains neither ":" nor "~", so that no two policies have a subject in common, nor a
// key and a fallback key.
func (p *Policy) subject(ctx context.Context, r *http.Request) (string, error) {
	keys := &keyContext{Context: ctx}
	key, err := p.Key(keys, r)
	by := ":"
	if p.Fallback != nil && (errors.Is(err, ErrNoKey) || err == nil && key == "") {
		key, err = p.Fallback(keys, r)
		by = "~"
	}
	switch {
	case err != nil:
		return "", p.wrapError(err)
	case key == "":
		return "", p.wrapError(ErrNoKey)
	}
	return p.Name + by + keys.storeForm(key), nil
}

// keyContext is what a policy's key functions get. It knows the key by address that one of
// them has made: to a caller who chooses a name, that is the form of another key.
type keyContext struct {
	context.Context
	mu      sync.Mutex
	address string // the last one, "" if there is none
}

type keyContextKey struct{}

// Value makes k findable.
func (k *keyContext) Value(key any) any {
	if _, ok := key.(keyContextKey); ok {
		return k
	}
	return k.Context.Value(key)
}

// noteAddressKey notes that a key function has made a key of an address.
func noteAddressKey(ctx context.Context, key string) {
	if k, ok := ctx.Value(keyContextKey{}).(*keyContext); ok {
		k.mu.Lock()
		k.address = key
		k.mu.Unlock()
	}
}

const (
	// maxSubjectLen is the length of the longest key that is kept as it is.
	maxSubjectLen = 128
	longKey       = "long-" // begins the hash of a long key
	escapedKey    = "="     // begins a key that would otherwise read like something else
)

// storeForm returns the form of a key in the store, of which no two keys have the same: the hash
// of a long one, the key of an address, any other key.
func (k *keyContext) storeForm(key string) string {
	k.mu.Lock()
	address := k.address
	k.mu.Unlock()
	switch {
	case len(key) > maxSubjectLen:
		return longKey + hashParts(key)
	case strings.HasPrefix(key, longKey), strings.HasPrefix(key, escapedKey),
		key != address && addrkey.Parse(key).IsValid():
		return escapedKey + key
	}
	return key
}
