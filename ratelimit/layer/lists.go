package layer

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/internal/netaddr"
	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// ListsOptions configure the layer that answers without the store for keys on an allow list or a deny list. A key on both
// lists is denied. The zero value has two empty lists.
//
// A take, peek or add of an allowed key is Allowed, even above the limit, and is not counted; Remaining is the rule's burst.
// A take or peek of a denied key is not Allowed; Remaining is 0, and RetryAfter and ResetAfter are an hour. These results
// are from [ratelimit.FromAllowList] and [ratelimit.FromDenyList]. The store runs counts, refunds, resets, and adds of a
// denied key.
type ListsOptions struct {
	// Takes of keys on Allow always pass, and takes of keys on Deny never.
	Allow, Deny List
	// Address returns the addresses in a key, for Networks, or the zero Prefix. Nil means the addresses in a policy's key by
	// [ratelimit.ByIP] or [ratelimit.IPOptions]. Composite keys need their own function.
	//
	// By default, the key of a [ratelimit.Limiter] has an address if it is an IPv4 address, or if an address follows the
	// first ":" or "~". Put "user:=" before a name that clients choose, as policies do. After "user:" alone, a name could
	// be an address.
	Address func(key string) netip.Prefix
}

// listLayer is the layer of ListsOptions.
type listLayer struct {
	inner   ratelimit.Store
	address func(key string) netip.Prefix
	lists   atomic.Pointer[lists]
}

// lists holds both lists, which are replaced together.
type lists struct {
	allow, deny *list
}

// newLists returns a layer around inner. It returns an error if an option is invalid.
func newLists(inner ratelimit.Store, o ListsOptions) (*listLayer, error) {
	if o.Address == nil {
		o.Address = policyAddress
	}
	l := &listLayer{inner: inner, address: o.Address}
	if err := l.Set(o.Allow, o.Deny); err != nil {
		return nil, err
	}
	return l, nil
}

// Set replaces both lists.
func (l *listLayer) Set(allow, deny List) error {
	a, err := newList("ListsOptions.Allow", allow)
	if err != nil {
		return err
	}
	d, err := newList("ListsOptions.Deny", deny)
	if err != nil {
		return err
	}
	l.lists.Store(&lists{a, d})
	return nil
}

func (l *listLayer) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	res, answered, err := l.answer(ctx, l.lists.Load(), op)
	if answered || err != nil {
		return res, err
	}
	return l.inner.DoOne(ctx, op)
}

// Do runs all ops that need the store in one call.
func (l *listLayer) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	lists, rest := l.lists.Load(), subset{out: make([]ratelimit.Result, len(ops))}
	for from, group := range storage.Groups(ops) {
		rest.newGroup = true
		for i, op := range group {
			res, answered, err := l.answer(ctx, lists, op)
			switch {
			case err != nil:
				return nil, err
			case answered:
				rest.out[from+i] = res
			default:
				rest.add(op, from+i)
			}
		}
	}
	err := rest.do(ctx, l.inner)
	return rest.out, err
}

// answer returns the result of an op that the lists decide. It answers all ops of a group or none, because they have the
// same key and kind.
func (l *listLayer) answer(ctx context.Context, lists *lists, op ratelimit.Op) (res ratelimit.Result, answered bool, err error) {
	source := l.source(lists, op.Key)
	isAsked := op.Kind == ratelimit.Take || op.Kind == ratelimit.Peek
	switch source {
	case ratelimit.FromDenyList:
		res = ratelimit.Result{Source: source, Limit: op.Rule.Limit(), Violated: true, RetryAfter: time.Hour, ResetAfter: time.Hour}
		answered = isAsked
	case ratelimit.FromAllowList:
		res = ratelimit.Result{Source: source, Limit: op.Rule.Limit(), Allowed: true, Remaining: op.Rule.Burst()}
		answered = isAsked || op.Kind == ratelimit.Add
		op.N = min(op.N, 1) // it may be too large
	}
	if !answered {
		return res, false, nil
	}
	return res, true, check(ctx, []ratelimit.Op{op})
}

// source returns the list that contains a key, or FromStore if no list contains it.
func (l *listLayer) source(lists *lists, key string) ratelimit.Source {
	var addresses netip.Prefix
	if len(lists.allow.networks.lengths)+len(lists.deny.networks.lengths) > 0 {
		addresses = l.address(key)
	}
	if addresses.IsValid() {
		addresses = netaddr.Unmap(addresses)
	}
	switch {
	case lists.deny.contains(key, addresses):
		return ratelimit.FromDenyList
	case lists.allow.contains(key, addresses):
		return ratelimit.FromAllowList
	default:
		return ratelimit.FromStore
	}
}

// List is a set of keys. Each field matches keys in the form that the store gets: a policy's key is the policy's name, ":"
// ("~" for a key of its Fallback), and the result of its Key in the form that [ratelimit.KeyFunc] describes.
type List struct {
	// Keys are whole keys, such as "search:192.0.2.1".
	Keys []string
	// Prefixes match the start of a key. "search:" matches all keys of a policy.
	Prefixes []string
	// Networks match the keys whose addresses are all in the network, as [ListsOptions.Address] returns them. An IPv6
	// address is counted by its /64, which is not in the network of this one address. IPv4-mapped IPv6 addresses count as
	// IPv4 addresses.
	Networks []netip.Prefix
}

// list is a [List] that is prepared for look-ups.
type list struct {
	keys     map[string]bool
	prefixes prefixSet[string]
	networks prefixSet[netip.Prefix]
}

// newList returns an error with the name of the list if an entry is invalid.
func newList(name string, from List) (*list, error) {
	l := &list{keys: map[string]bool{}}
	for i, k := range from.Keys {
		if k == "" {
			return nil, option.Errorf("layer", fmt.Sprintf("%s.Keys[%d]", name, i), "is empty")
		}
		l.keys[k] = true
	}
	for i, p := range from.Prefixes {
		if p == "" {
			return nil, option.Errorf("layer", fmt.Sprintf("%s.Prefixes[%d]", name, i), "is empty, which would match every key")
		}
		l.prefixes.add(p, len(p))
	}
	for i, p := range from.Networks {
		if !p.IsValid() {
			return nil, option.Errorf("layer", fmt.Sprintf("%s.Networks[%d]", name, i), "is not a prefix")
		}
		p = netaddr.Unmap(p)
		l.networks.add(p, p.Bits())
	}
	return l, nil
}

// contains reports whether the list matches a key with these addresses.
func (l *list) contains(key string, addresses netip.Prefix) bool {
	return l.keys[key] || l.prefixes.match(len(key), func(n int) string { return key[:n] }) ||
		l.networks.match(addresses.Bits(), func(n int) netip.Prefix {
			wider, _ := addresses.Addr().Prefix(n) // n is never too long
			return wider
		})
}

// prefixSet is a set of prefixes of strings or addresses. The zero value is empty.
type prefixSet[P comparable] struct {
	set     map[P]bool
	lengths []int // the distinct lengths of the prefixes
}

func (s *prefixSet[P]) add(p P, length int) {
	if s.set == nil {
		s.set = map[P]bool{}
	}
	s.set[p] = true
	if !slices.Contains(s.lengths, length) {
		s.lengths = append(s.lengths, length)
	}
}

// match reports whether a prefix of a value is in the set. cut returns the value's first n units.
func (s *prefixSet[P]) match(length int, cut func(n int) P) bool {
	return slices.ContainsFunc(s.lengths, func(n int) bool { return n <= length && s.set[cut(n)] })
}

// policyAddress returns the addresses in a policy's key, which follow the policy's name and ":" or "~".
func policyAddress(key string) netip.Prefix {
	if i := strings.IndexAny(key, ":~"); i >= 0 {
		key = key[i+1:]
	}
	return netaddr.ParsePrefix(key)
}
