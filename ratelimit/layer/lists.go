package layer

import (
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

// ListsOptions are the layer that answers for keys that are on a list, without the store: an allow
// list, and a deny list, which is asked first. All other keys are the store's. The zero value has two
// empty lists.
//
// A take or peek of an allowed key has Allowed, and all of the rule's burst remaining, even
// if it asks for more; an add, too. Nothing is counted. A take or peek of a denied key is not Allowed, has nothing
// remaining, and its RetryAfter and ResetAfter are the option; nor is anything else
// in a group with such a take done. The Source is [ratelimit.FromAllowList] or
// [ratelimit.FromDenyList]. Counts, resets, refunds of what was charged before the key
// was listed, and adds to a denied key go to the store.
type ListsOptions struct {
	// Allow has the keys whose takes always pass, Deny those whose takes never do. What
	// is on both is denied.
	Allow, Deny List
	// RetryAfter is what a denied take is told. Default: an hour.
	RetryAfter time.Duration
	// Address finds the addresses that a key counts by, for the lists' networks; the zero
	// Prefix says that there are none. Default: of a Policy's keys, those that
	// [ratelimit.ByIP] or IPOptions has made, and no name that reads like an address. Keys
	// that have more in them need a function of their own.
	//
	// A Limiter's keys are what the program makes them. By default, one counts by an
	// address if it is an IPv4 address, or has any address after its first ":" or "~". A
	// name that callers choose must not stand there alone: write "user:=" before it, as a
	// Policy does, and not "user:".
	Address func(key string) netip.Prefix
}

// listLayer is what ListsOptions configures.
type listLayer struct {
	inner ratelimit.Store
	one   func(context.Context, ratelimit.Op) (ratelimit.Result, error)
	wait  time.Duration
	find  func(key string) netip.Prefix
	both  atomic.Pointer[lists]
}

// lists are the two lists at one moment.
type lists struct {
	allow, deny *list
}

// newLists returns a layer around inner. An error names the option that is wrong.
func newLists(inner ratelimit.Store, o ListsOptions) (*listLayer, error) {
	if err := option.Duration("layer", "ListsOptions.RetryAfter", o.RetryAfter, 0); err != nil {
		return nil, err
	}
	if o.RetryAfter == 0 {
		o.RetryAfter = time.Hour
	}
	if o.Address == nil {
		o.Address = addressAfterName
	}
	l := &listLayer{inner: inner, one: storage.DoOne(inner), wait: o.RetryAfter, find: o.Address}
	if err := l.Set(o.Allow, o.Deny); err != nil {
		return nil, err
	}
	return l, nil
}

// Set replaces both lists, for all ops that begin later. If one has something wrong, the
// error says so and nothing is changed. It costs as much as the lists are long.
func (l *listLayer) Set(allow, deny List) error {
	a, err := newList("Allow", allow)
	if err != nil {
		return err
	}
	d, err := newList("Deny", deny)
	if err != nil {
		return err
	}
	l.both.Store(&lists{a, d})
	return nil
}

// DoOne is Do with a list of one.
func (l *listLayer) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	source := l.source(l.both.Load(), op.Key)
	if asksStore(&op, source, false) {
		return l.one(ctx, op)
	}
	checked := [1]ratelimit.Op{op}
	if source == ratelimit.FromAllowList {
		lenient(&checked[0])
	}
	if err := check(ctx, checked[:]); err != nil {
		return ratelimit.Result{}, err
	}
	return l.answer(&op, source), nil
}

// Do runs ops as [ratelimit.Store] says. What isn't answered here is one call of the store.
func (l *listLayer) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	sources, listed := l.sources(ops)
	if !listed {
		return l.inner.Do(ctx, ops)
	}
	checked := slices.Clone(ops)
	for i := range checked {
		if sources[i] == ratelimit.FromAllowList {
			lenient(&checked[i])
		}
	}
	if err := check(ctx, checked); err != nil {
		return nil, err
	}
	out := make([]ratelimit.Result, len(ops))
	rest := rest{out: out}
	for from, group := range storage.Groups(ops) {
		source := sources[from]
		denied := source == ratelimit.FromDenyList && slices.ContainsFunc(group, isTake)
		rest.apart = true
		for i := range group {
			if asksStore(&group[i], source, denied) {
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

func isTake(op ratelimit.Op) bool { return op.Kind == ratelimit.Take }

// check says what is wrong with ops before anything is done.
func check(ctx context.Context, ops []ratelimit.Op) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return storage.Validate(ops)
}

// lenient makes an op that would be too large one that isn't: it passes all the same.
func lenient(op *ratelimit.Op) {
	op.NewGroup = true
	op.N = min(op.N, 1)
}

// sources returns whose each op is, and whether any is on a list.
func (l *listLayer) sources(ops []ratelimit.Op) (sources []ratelimit.Source, listed bool) {
	both := l.both.Load()
	for i := range ops {
		source := l.source(both, ops[i].Key)
		if source != ratelimit.FromStore && !listed {
			sources, listed = make([]ratelimit.Source, len(ops)), true
		}
		if listed {
			sources[i] = source
		}
	}
	return sources, listed
}

// source returns whose key it is.
func (l *listLayer) source(both *lists, key string) ratelimit.Source {
	var at netip.Prefix
	if both.allow.networks.any() || both.deny.networks.any() {
		at = l.find(key)
	}
	if at.IsValid() {
		at = netaddr.Unmap(at)
	}
	switch {
	case both.deny.has(key, at):
		return ratelimit.FromDenyList
	case both.allow.has(key, at):
		return ratelimit.FromAllowList
	default:
		return ratelimit.FromStore
	}
}

// asksStore tells whether an op is the store's. denied says that it is in a group that is
// denied.
func asksStore(op *ratelimit.Op, source ratelimit.Source, denied bool) bool {
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

// answer answers an op that isn't the store's.
func (l *listLayer) answer(op *ratelimit.Op, source ratelimit.Source) ratelimit.Result {
	res := ratelimit.Result{Source: source, Limit: op.Rule.Limit()}
	switch asks := op.Kind == ratelimit.Take || op.Kind == ratelimit.Peek; {
	case source == ratelimit.FromAllowList:
		res.Allowed, res.Remaining = op.Kind != ratelimit.Refund, op.Rule.Burst()
	case asks:
		res.Violated = true
		res.RetryAfter, res.ResetAfter = l.wait, l.wait
	}
	return res
}

// rest is the ops that are left for the store, and where their results go.
type rest struct {
	out   []ratelimit.Result
	ops   []ratelimit.Op
	at    []int
	apart bool // the next one begins a group
}

func (r *rest) add(op ratelimit.Op, at int) {
	op.NewGroup, r.apart = r.apart, false
	r.ops, r.at = append(r.ops, op), append(r.at, at)
}

func (r *rest) do(ctx context.Context, store ratelimit.Store) error {
	if len(r.ops) == 0 {
		return nil
	}
	out, err := store.Do(ctx, r.ops)
	if err != nil {
		return err
	}
	for i, at := range r.at {
		r.out[at] = out[i]
	}
	return nil
}
