package layer

import (
	"context"
	"errors"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// Options choose the layers around a store, and configure them. A nil field leaves its layer out.
type Options struct {
	// From the outside in.
	Lists     *ListsOptions
	Shadow    *ShadowOptions
	DenyCache *DenyCacheOptions
	Failover  *FailoverOptions
	Lease     *LeaseOptions
}

// Store is a [ratelimit.Store] around another, with layers. It is safe for concurrent use.
type Store struct {
	outermost ratelimit.Store
	one       func(context.Context, ratelimit.Op) (ratelimit.Result, error)

	// Nil if they were left out.
	lists    *listLayer
	shadow   *shadowLayer
	failover *failover
	lease    *leaseLayer
}

// ErrNoLists means that [Store.SetLists] was called without Options.Lists.
var ErrNoLists = errors.New("layer: the store has no lists")

// New returns inner with layers around it. inner stays the caller's to close. An error names the
// field that is out of range.
func New(inner ratelimit.Store, o Options) (*Store, error) {
	if inner == nil {
		return nil, errors.New("layer: New: store is nil")
	}
	s := &Store{outermost: inner}
	// The innermost first. What is on a list needs nothing else; a denial that was only a try must
	// not be remembered as one; what the cache knows doesn't need the store, which may be down; and
	// what was leased can be spent while it is down.
	for _, add := range []func() error{
		func() (err error) { s.lease, err = wrap(s, o.Lease, newLease); return err },
		func() (err error) { s.failover, err = wrap(s, o.Failover, newFailover); return err },
		func() (err error) { _, err = wrap(s, o.DenyCache, newDenyCache); return err },
		func() (err error) { s.shadow, err = wrap(s, o.Shadow, newShadow); return err },
		func() (err error) { s.lists, err = wrap(s, o.Lists, newLists); return err },
	} {
		if err := add(); err != nil {
			_ = s.Close() // which has nothing to give back yet
			return nil, err
		}
	}
	s.one = storage.DoOne(s.outermost)
	return s, nil
}

// wrap puts a layer around s, if there are options for it.
func wrap[L ratelimit.Store, O any](s *Store, o *O, layer func(ratelimit.Store, O) (L, error)) (l L, err error) {
	if o == nil {
		return l, nil
	}
	if l, err = layer(s.outermost, *o); err != nil {
		return l, err
	}
	s.outermost = l
	return l, nil
}

// Do runs ops as [ratelimit.Store] says.
func (s *Store) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	return s.outermost.Do(ctx, ops)
}

// DoOne is Do with a list of one.
func (s *Store) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	return s.one(ctx, op)
}

// SetLists replaces both lists, for all ops that begin later. If something is wrong with one, the
// error says so and nothing is changed. It costs as much as the lists are long.
func (s *Store) SetLists(allow, deny List) error {
	if s.lists == nil {
		return ErrNoLists
	}
	return s.lists.Set(allow, deny)
}

// Stats are what the layers have seen since the store was made.
type Stats struct {
	Shadow   ShadowStats
	Failover FailoverStats
}

// Stats returns the numbers; those of a layer that was left out are zero.
func (s *Store) Stats() (stats Stats) {
	if s.shadow != nil {
		stats.Shadow = s.shadow.Stats()
	}
	if s.failover != nil {
		stats.Failover = s.failover.Stats()
	}
	return stats
}

// Close gives back what is leased and ends the layers' goroutines; of all layers only Lease needs
// it. It waits for the calls that are under way, but not longer than twice LeaseOptions.Timeout. An
// error says that not all could be given back; that stays charged. From then on Lease only passes
// on what it is asked. Another Close does nothing.
func (s *Store) Close() error {
	if s.lease == nil {
		return nil
	}
	return s.lease.Close()
}
