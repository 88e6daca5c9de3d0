package layer

import (
	"cmp"
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/internal/netaddr"
	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// ListsOptions configure the layer that answers for the keys of an allow list and a deny list
// without the store. A key on both lists is denied. The zero value has two empty lists.
//
// A take, peek or add of an allowed key is Allowed, even above the limit, and not counted; all of
// the rule's burst remains. A take or peek of a denied key is not Allowed; nothing remains, and
// RetryAfter and ResetAfter are the option's. These results are from [ratelimit.FromAllowList]
// or [ratelimit.FromDenyList]. The store runs counts, refunds, resets, and adds of a denied key.
type ListsOptions struct {
	// Allow lists keys whose takes always pass, Deny keys whose takes never pass.
	Allow, Deny List
	// RetryAfter is that of denied takes. Zero means an hour.
	RetryAfter time.Duration
	// Address returns the addresses that a key counts by, for the lists' Networks; the zero
	// Prefix if there are none. Nil means those of a policy's keys by [ratelimit.ByIP] or
	// IPOptions; a name that reads like an address is none. Composite keys need a function of
	// their own.
	//
	// A program chooses the keys of a Limiter itself. By default, such a key counts by an
	// address if it is an IPv4 address, or has any address after its first ":" or "~". Names
	// that clients choose must not stand there alone: put "user:=" before them, as a policy
	// does, not "user:".
	Address func(key string) netip.Prefix
}

// listLayer is the layer of ListsOptions.
type listLayer struct {
	inner   ratelimit.Store
	wait    time.Duration
	address func(key string) netip.Prefix
	lists   atomic.Pointer[lists]
}

// lists are both lists, which are replaced together.
type lists struct {
	allow, deny *list
}

// newLists returns a layer around inner. It returns an error if an option is invalid.
func newLists(inner ratelimit.Store, o ListsOptions) (*listLayer, error) {
	if err := option.Duration("layer", "ListsOptions.RetryAfter", o.RetryAfter, 0); err != nil {
		return nil, err
	}
	if o.Address == nil {
		o.Address = policyAddress
	}
	l := &listLayer{inner: inner, wait: cmp.Or(o.RetryAfter, time.Hour), address: o.Address}
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

// Do implements [ratelimit.Store]. The ops that need the store are one call.
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

// answer returns the result of an op that the lists decide. The ops of a group are all answered or
// none, as they have the same key and kind.
func (l *listLayer) answer(ctx context.Context, lists *lists, op ratelimit.Op) (res ratelimit.Result, answered bool, err error) {
	source := l.source(lists, op.Key)
	isAsked := op.Kind == ratelimit.Take || op.Kind == ratelimit.Peek
	switch source {
	case ratelimit.FromDenyList:
		res = ratelimit.Result{Source: source, Limit: op.Rule.Limit(), Violated: true, RetryAfter: l.wait, ResetAfter: l.wait}
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

// source returns which list contains a key, FromStore if none does.
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
