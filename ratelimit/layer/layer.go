// Package layer wraps a [ratelimit.Store] in layers. [New] returns a [Store] with the layers that [Options] name, from the
// outermost to the innermost:
//
//	Lists      keys that are always allowed, and keys that are always denied
//	Shadow     rules that are evaluated and counted, but not enforced
//	DenyCache  repeats the store's denials without a call of the store
//	Failover   a deadline, a circuit breaker, and answers without the store
//	Prepaid    takes units in advance, and spends them without the store
package layer

import (
	"context"
	"errors"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// Options selects and configures the layers around a store. If a field is nil, its layer is omitted.
type Options struct {
	Lists     *ListsOptions
	Shadow    *ShadowOptions
	DenyCache *DenyCacheOptions
	Failover  *FailoverOptions
	Prepaid   *PrepaidOptions
}

// Store is a [ratelimit.Store] with layers around it. It is safe for concurrent use.
type Store struct {
	outermost ratelimit.Store

	// A layer is nil if it was omitted.
	lists    *listLayer
	failover *failover
	prepaid  *prepaidLayer
}

// New returns a Store with layers around inner. It returns an [*option.Error] if an option is invalid. The caller
// closes the Store first, and then inner.
func New(inner ratelimit.Store, o Options) (*Store, error) {
	if option.IsNil(inner) {
		return nil, errors.New("layer: New: store is nil")
	}
	s := &Store{outermost: inner}
	// The innermost layer is added first. The order matters. The cache must be outside Failover, because it repeats
	// denials while the store is down. It must be inside Shadow, because it must not repeat the denials of shadow
	// rules.
	var err error
	s.prepaid, err = addLayer(s, o.Prepaid, newPrepaid, err)
	s.failover, err = addLayer(s, o.Failover, newFailover, err)
	_, err = addLayer(s, o.DenyCache, newDenyCache, err)
	_, err = addLayer(s, o.Shadow, newShadow, err)
	s.lists, err = addLayer(s, o.Lists, newLists, err)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// addLayer adds a layer to s if it has options and err is nil.
func addLayer[L ratelimit.Store, O any](s *Store, o *O, layer func(ratelimit.Store, O) (L, error), err error) (l L, _ error) {
	if o == nil || err != nil {
		return l, err
	}
	if l, err = layer(s.outermost, *o); err == nil {
		s.outermost = l
	}
	return l, err
}

// Do implements [ratelimit.Store].
func (s *Store) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	return s.outermost.Do(ctx, ops)
}

// DoOne is Do for a single op.
func (s *Store) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	return s.outermost.DoOne(ctx, op)
}

// SetLists replaces both lists for all later ops. If an entry is invalid or Options.Lists was nil, it returns an
// error and changes nothing.
func (s *Store) SetLists(allow, deny List) error {
	if s.lists == nil {
		return errors.New("layer: SetLists: the store has no lists")
	}
	return s.lists.Set(allow, deny)
}

// Stats returns the counters and the state of Failover. They are zero if it was omitted.
func (s *Store) Stats() FailoverStats {
	if s.failover == nil {
		return FailoverStats{}
	}
	return s.failover.Stats()
}

// Close gives prepaid units back to the inner store; without Prepaid it does nothing. It waits for calls in flight, but
// at most twice PrepaidOptions.Timeout. It returns an error if units could not be given back: they stay charged. A
// closed Store runs ops, but takes no more units in advance. Later calls of Close do nothing.
func (s *Store) Close() error {
	if s.prepaid == nil {
		return nil
	}
	return s.prepaid.Close()
}
