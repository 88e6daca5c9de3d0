// Package reservation takes an estimate of what a request will cost, and charges the
// difference when the cost is known: for tokens of a language model, bytes of a response, or
// rows of a query.
package reservation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// ErrExpired means that a reservation was completed after its Lifetime. Nothing of it was
// given back: what was reserved stays charged.
var ErrExpired = errors.New("reservation: expired")

// Options configure a [Reserver]. The zero value is usable.
type Options struct {
	// Lifetime is how long units of a reservation can be given back. Zero means the rule's
	// Per, after which only Buckets with a longer span have anything to give back.
	Lifetime time.Duration
}

// Reserver makes reservations by one rule. It is immutable and safe for concurrent use.
type Reserver struct {
	store    ratelimit.Store
	rule     ratelimit.Rule
	lifetime time.Duration
}

// New returns a Reserver for the quota of rule in store, which may have layers. It returns an
// error if an argument is invalid.
func New(store ratelimit.Store, rule ratelimit.Rule, o Options) (*Reserver, error) {
	switch {
	case option.IsNil(store):
		return nil, errors.New("reservation: New: store is nil")
	case rule.Err() != nil:
		return nil, option.Prefix("reservation: New: ", "ratelimit", rule.Err())
	case rule.Limit() == 0:
		return nil, fmt.Errorf("reservation: New: %v has no limit", rule)
	}
	if err := option.Duration("reservation", "Options.Lifetime", o.Lifetime, 0); err != nil {
		return nil, err
	}
	if o.Lifetime == 0 {
		o.Lifetime = rule.Per()
	}
	return &Reserver{store: store, rule: rule, lifetime: o.Lifetime}, nil
}

// Reserve takes estimate units of key. If there are fewer, the reservation's Result is a
// denial and nothing is charged. Its errors are those of a take.
func (r *Reserver) Reserve(ctx context.Context, key string, estimate int64) (*Reservation, error) {
	began := time.Now()
	res, err := r.store.DoOne(ctx, ratelimit.Op{Rule: r.rule, Key: key, N: estimate, Kind: ratelimit.Take})
	if err != nil {
		return nil, err
	}
	return &Reservation{
		by: r, key: key, estimate: estimate, result: res,
		expires: began.Add(r.lifetime), lock: make(chan struct{}, 1),
	}, nil
}

// Reservation is units that were taken before the cost was known. Commit or Cancel completes
// it, once; until then, and if neither is called, all units stay charged. It is safe for
// concurrent use, holds only memory, and needs no closing.
type Reservation struct {
	by       *Reserver
	key      string
	estimate int64
	result   ratelimit.Result
	expires  time.Time

	lock       chan struct{} // a mutex that a context can interrupt; guards the following
	completed  bool
	settlement Settlement
	err        error
}

// Settlement is the outcome of a reservation, in units: Charged is the estimate, minus
// Returned, plus Added.
type Settlement struct {
	Charged, Returned, Added int64
}

// Result returns the result of the take: whether the units are reserved, and if not, when
// they may be available.
func (r *Reservation) Result() ratelimit.Result { return r.result }

// Commit completes the reservation with a cost of actual units, 0 or more. Units beyond it
// are given back; missing ones are charged whatever the limit, because they have been used,
// and count against later takes.
//
// Giving back is a Refund, and not always possible: a fixed window accepts units until it
// ends, buckets and logs while they keep the charge, and a GCRA only if nothing was charged
// since. The rest stays charged; the settlement reports how much.
//
// The first call of Commit or Cancel decides. Others, with whatever arguments, wait for it
// and return the same without a call of the store. That includes an error of the store, which
// may have taken effect: the call isn't repeated, and Charged is then the maximum. A
// ctx that ends during the call is such an error; one that has ended before is an error of
// that call only. It returns a [*ratelimit.DeniedError] if the reservation was denied,
// [ratelimit.ErrOp] if actual is below 0, and [ErrExpired] if there are units to give back
// after the Lifetime.
func (r *Reservation) Commit(ctx context.Context, actual int64) (Settlement, error) {
	switch {
	case actual < 0:
		return Settlement{}, fmt.Errorf("%w: %d units used, want at least 0", ratelimit.ErrOp, actual)
	case !r.result.Allowed:
		return Settlement{}, r.result.Err()
	}
	return r.complete(ctx, actual)
}

// Cancel completes the reservation as unused, as Commit of 0 does. If it was denied, there is
// nothing to cancel, which is no error.
func (r *Reservation) Cancel(ctx context.Context) (Settlement, error) {
	if !r.result.Allowed {
		return Settlement{}, nil
	}
	return r.complete(ctx, 0)
}

var errPanicked = fmt.Errorf("%w: it panicked while a reservation was completed", ratelimit.ErrStore)

func (r *Reservation) complete(ctx context.Context, actual int64) (Settlement, error) {
	if ctx.Err() != nil {
		return Settlement{}, context.Cause(ctx)
	}
	select {
	case r.lock <- struct{}{}:
	case <-ctx.Done():
		return Settlement{}, context.Cause(ctx)
	}
	defer func() { <-r.lock }()
	if !r.completed {
		r.completed = true
		// What later calls return if the store panics.
		r.settlement, r.err = Settlement{Charged: max(r.estimate, actual)}, errPanicked
		r.settlement, r.err = r.chargeDifference(ctx, actual)
	}
	return r.settlement, r.err
}

// chargeDifference charges or gives back the difference between estimate and actual.
func (r *Reservation) chargeDifference(ctx context.Context, actual int64) (Settlement, error) {
	unchanged := Settlement{Charged: r.estimate}
	switch {
	case actual > r.estimate:
		return r.add(ctx, actual-r.estimate)
	case actual == r.estimate:
		return unchanged, nil
	case !time.Now().Before(r.expires):
		return unchanged, ErrExpired
	case r.result.Receipt.N < r.estimate-actual: // a layer answered, and charged nothing
		return unchanged, nil
	default:
		return r.giveBack(ctx, r.estimate-actual)
	}
}

func (r *Reservation) add(ctx context.Context, n int64) (Settlement, error) {
	_, err := r.by.store.DoOne(ctx, ratelimit.Op{Rule: r.by.rule, Key: r.key, N: n, Kind: ratelimit.Add})
	s := Settlement{Charged: r.estimate + n}
	if err == nil {
		s.Added = n
	}
	return s, err
}

func (r *Reservation) giveBack(ctx context.Context, n int64) (Settlement, error) {
	op := ratelimit.Op{Rule: r.by.rule, Key: r.key, Kind: ratelimit.Refund, Receipt: r.result.Receipt}
	op.Receipt.N = n
	s := Settlement{Charged: r.estimate}
	res, err := r.by.store.DoOne(ctx, op)
	if err == nil && res.Allowed {
		s.Charged, s.Returned = r.estimate-n, n
	}
	return s, err
}
