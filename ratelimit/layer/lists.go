package layer

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
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
// RetryAfter and ResetAfter are the option's. A group with such a take is not done. Results
// are from [ratelimit.FromAllowList] or [ratelimit.FromDenyList]. The store runs counts, resets,
// refunds of earlier charges, and adds of a denied key.
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

// DoOne is Do with a list of one.
func (l *listLayer) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	source := l.source(l.lists.Load(), op.Key)
	if needsStore(&op, source, false) {
		return l.inner.DoOne(ctx, op)
	}
	checked := [1]ratelimit.Op{op}
	if source == ratelimit.FromAllowList {
		clampToBurst(&checked[0])
	}
	if err := check(ctx, checked[:]); err != nil {
		return ratelimit.Result{}, err
	}
	return l.answer(&op, source), nil
}

// Do implements [ratelimit.Store]. The ops that need the store are one call.
func (l *listLayer) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	sources, listed := l.sources(ops)
	if !listed {
		return l.inner.Do(ctx, ops)
	}
	checked := slices.Clone(ops)
	for i := range checked {
		if sources[i] == ratelimit.FromAllowList {
			clampToBurst(&checked[i])
		}
	}
	if err := check(ctx, checked); err != nil {
		return nil, err
	}
	out := make([]ratelimit.Result, len(ops))
	rest := subset{out: out}
	for from, group := range storage.Groups(ops) {
		source := sources[from]
		denied := source == ratelimit.FromDenyList && slices.ContainsFunc(group, isTake)
		rest.beginGroup()
		for i := range group {
			if needsStore(&group[i], source, denied) {
				rest.add(group[i], from+i)
			} else {
				out[from+i] = l.answer(&group[i], source)
			}
		}
	}
	if err := rest.do(ctx, l.inner); err != nil {
		return nil, err
	}
	return out, nil
}

// clampToBurst makes an allowed op valid that is too large for its rule.
func clampToBurst(op *ratelimit.Op) {
	op.NewGroup = true
	op.N = min(op.N, 1)
}

// sources returns the source of each op's result, and whether any key is listed.
func (l *listLayer) sources(ops []ratelimit.Op) (sources []ratelimit.Source, listed bool) {
	lists := l.lists.Load()
	for i := range ops {
		source := l.source(lists, ops[i].Key)
		if source != ratelimit.FromStore && !listed {
			sources, listed = make([]ratelimit.Source, len(ops)), true
		}
		if listed {
			sources[i] = source
		}
	}
	return sources, listed
}

// source returns which list contains a key, FromStore if none does.
func (l *listLayer) source(lists *lists, key string) ratelimit.Source {
	var addresses netip.Prefix
	if len(lists.allow.networks.set) > 0 || len(lists.deny.networks.set) > 0 {
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

// needsStore reports whether the store runs an op; denied means that its group is denied.
func needsStore(op *ratelimit.Op, source ratelimit.Source, denied bool) bool {
	if source == ratelimit.FromStore {
		return true
	}
	switch op.Kind {
	case ratelimit.Take, ratelimit.Peek:
		return false
	case ratelimit.Add:
		return source == ratelimit.FromDenyList && !denied
	case ratelimit.Refund:
		return !denied && op.Receipt != ratelimit.Receipt{}
	case ratelimit.Reset:
		return !denied
	default:
		return op.Kind == ratelimit.Count
	}
}

// answer returns the result of an op that the store doesn't run.
func (l *listLayer) answer(op *ratelimit.Op, source ratelimit.Source) ratelimit.Result {
	res := ratelimit.Result{Source: source, Limit: op.Rule.Limit()}
	switch {
	case source == ratelimit.FromAllowList:
		res.Allowed, res.Remaining = op.Kind != ratelimit.Refund, op.Rule.Burst()
	case op.Kind == ratelimit.Take, op.Kind == ratelimit.Peek:
		res.Violated = true
		res.RetryAfter, res.ResetAfter = l.wait, l.wait
	}
	return res
}
