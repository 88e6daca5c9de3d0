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

// ListsOptions configures the layer that answers without the store for keys on an allow list or a deny list. A key on
// both lists is denied. The zero value has two empty lists.
//
// A take, peek or add of an allowed key is always Allowed, even above the limit, and is not counted. Its Remaining is
// the rule's burst. A take or peek of a denied key is never Allowed. Its Remaining is 0, and its RetryAfter and
// ResetAfter are an hour. These results are from [ratelimit.FromAllowList] and [ratelimit.FromDenyList]. The store
// runs all counts, refunds and resets, and the adds of denied keys.
type ListsOptions struct {
	// Takes of keys on Allow always pass. Takes of keys on Deny never pass.
	Allow, Deny List
	// Address returns the addresses in a key, to compare them with Networks. It returns the zero Prefix if the key
	// has no address. Nil means the addresses in a policy's key by [ratelimit.ByIP] or [ratelimit.IPOptions].
	// Composite keys need their own function.
	//
	// If Address is nil, the key of a [ratelimit.Limiter] has an address if the key is an IPv4 address, or if an
	// address follows its first ":" or "~". If clients choose a name in the key, put "user:=" before the name, as
	// policies do. After "user:" alone, a name could be read as an address.
	Address func(key string) netip.Prefix
}

// listLayer is the layer of ListsOptions.
type listLayer struct {
	inner   ratelimit.Store
	address func(key string) netip.Prefix
	lists   atomic.Pointer[lists]
}

// lists holds both lists, because they are replaced together.
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

// Do runs all ops that need the store in a single call of the store.
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

// answer returns the result of op if the lists decide it. It decides either all ops of a group or none, because the
// ops of a group have the same key and kind.
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
		op.N = min(op.N, 1) // an allowed key may take more than the limit
	}
	if !answered {
		return res, false, nil
	}
	return res, true, check(ctx, []ratelimit.Op{op})
}

// source returns the source of results for the list that contains the key, or FromStore if no list contains it.
func (l *listLayer) source(lists *lists, key string) ratelimit.Source {
	var addresses netip.Prefix
	if len(lists.allow.bits)+len(lists.deny.bits) > 0 {
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

// List is a set of keys. Its fields match keys in the form that the store gets. The key of a policy is the policy's
// name, then ":" ("~" for a key of its Fallback), and then the result of its Key in the form that [ratelimit.KeyFunc]
// describes.
type List struct {
	// Keys are whole keys, such as "search:192.0.2.1".
	Keys []string
	// Prefixes match the start of a key. "search:" matches all keys of a policy. Each key is compared with all Prefixes.
	Prefixes []string
	// Networks match the keys with addresses that are all in one of the networks. [ListsOptions.Address] returns a
	// key's addresses. The key of an IPv6 address has its whole /64, so a smaller network does not match. IPv4-mapped
	// IPv6 addresses count as IPv4 addresses.
	Networks []netip.Prefix
}

// list is a [List] in a form with fast look-ups.
type list struct {
	keys     map[string]bool
	prefixes []string
	networks map[netip.Prefix]bool
	bits     []int // the distinct lengths of the networks
}

// newList prepares a list. If an entry is invalid, it returns an error that contains name.
func newList(name string, from List) (*list, error) {
	l := &list{keys: map[string]bool{}, prefixes: slices.Clone(from.Prefixes), networks: map[netip.Prefix]bool{}}
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
	}
	for i, p := range from.Networks {
		if !p.IsValid() {
			return nil, option.Errorf("layer", fmt.Sprintf("%s.Networks[%d]", name, i), "is not a prefix")
		}
		p = netaddr.Unmap(p)
		l.networks[p] = true
		if !slices.Contains(l.bits, p.Bits()) {
			l.bits = append(l.bits, p.Bits())
		}
	}
	return l, nil
}

// contains reports whether the list matches a key that has these addresses.
func (l *list) contains(key string, addresses netip.Prefix) bool {
	return l.keys[key] || slices.ContainsFunc(l.prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) ||
		slices.ContainsFunc(l.bits, func(n int) bool {
			wider, err := addresses.Addr().Prefix(n)
			return err == nil && n <= addresses.Bits() && l.networks[wider]
		})
}

// policyAddress returns the addresses in the key of a policy. They follow the policy's name and ":" or "~".
func policyAddress(key string) netip.Prefix {
	if i := strings.IndexAny(key, ":~"); i >= 0 {
		key = key[i+1:]
	}
	return netaddr.ParsePrefix(key)
}
