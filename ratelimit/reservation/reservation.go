// Package reservation is for requests whose cost is known only afterwards, such as the tokens of a language model or the
// bytes of a response. It takes an estimate, and charges or gives back the difference when the cost is known.
package reservation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// ErrExpired means that a reservation was completed after its Lifetime. All its units stay charged.
var ErrExpired = errors.New("reservation: expired")

// Options configure a [Reserver]. The zero value is usable.
type Options struct {
	// Lifetime is the time during which units of a reservation can be given back. The zero value means the rule's Per.
	// Only Buckets whose span is longer than Per can give units back after Per.
	Lifetime time.Duration
}

// Reserver makes reservations with one rule. It is immutable and safe for concurrent use.
type Reserver struct {
	limiter  *ratelimit.Limiter
	lifetime time.Duration
}

// New returns a Reserver for the quota of rule in store, which may have layers. It returns an error if an argument is
// invalid.
func New(store ratelimit.Store, rule ratelimit.Rule, o Options) (*Reserver, error) {
	limiter, err := ratelimit.NewLimiter(store, rule)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reservation: %w", err)
	case rule.Limit() == 0:
		return nil, fmt.Errorf("reservation: %v has no limit", rule)
	}
	if err := option.Duration("reservation", "Options.Lifetime", o.Lifetime, 0); err != nil {
		return nil, err
	}
	return &Reserver{limiter, cmp.Or(o.Lifetime, rule.Per())}, nil
}

// Reserve takes estimate units of key. If too few units are left, nothing is charged, and the reservation's Result is a
// denial. It returns an error if the take fails.
func (r *Reserver) Reserve(ctx context.Context, key string, estimate int64) (*Reservation, error) {
	began := time.Now()
	res, err := r.limiter.Take(ctx, key, estimate)
	if err != nil {
		return nil, err
	}
	return &Reservation{
		by: r, key: key, estimate: estimate, result: res,
		expires: began.Add(r.lifetime), lock: make(chan struct{}, 1),
	}, nil
}

// Reservation holds units that were taken before the cost was known. Commit or Cancel completes it, once. All units stay
// charged until then, or if neither is called. It is safe for concurrent use and needs no closing.
type Reservation struct {
	by       *Reserver
	key      string
	estimate int64
	result   ratelimit.Result
	expires  time.Time

	lock       chan struct{} // a mutex that a context can interrupt; guards the following fields
	completed  bool
	settlement Settlement
	err        error
}

// Settlement is the outcome of a reservation, in units. Charged is the estimate, minus Returned, plus Added.
type Settlement struct {
	Charged, Returned, Added int64
}

// Result returns the result of the take, which may be a denial.
func (r *Reservation) Result() ratelimit.Result { return r.result }

// Commit completes the reservation with a cost of actual units, 0 or more. It gives unused units back. It charges
// missing units even beyond the limit, because they have been used.
//
// Units are given back by a Refund, which is not always possible: a fixed window accepts units until it ends, buckets and
// logs as long as they keep the charge, and a GCRA only if nothing was charged since. Otherwise, the units stay charged,
// as the settlement shows.
//
// Only the first call of Commit or Cancel has an effect. Later calls, with any arguments, wait for it and return the
// same settlement and error. If the store fails or ctx ends during the first call, the store may have charged or given back
// the units. Later calls then return the error as well, and Charged is the maximum. If ctx has ended before the call, only
// this call fails. Commit returns a [*ratelimit.DeniedError] if the reservation was denied, [ratelimit.ErrOp] if actual is
// negative, and [ErrExpired] if there are units to give back after the Lifetime.
func (r *Reservation) Commit(ctx context.Context, actual int64) (Settlement, error) {
	switch {
	case actual < 0:
		return Settlement{}, fmt.Errorf("%w: %d units used, want at least 0", ratelimit.ErrOp, actual)
	case !r.result.Allowed:
		return Settlement{}, r.result.Err()
	}
	return r.complete(ctx, actual)
}

// Cancel is Commit of 0 units. It does nothing if the reservation was denied.
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
		// If the store panics, later calls return these values.
		r.settlement, r.err = Settlement{Charged: max(r.estimate, actual)}, errPanicked
		r.settlement, r.err = r.chargeDifference(ctx, actual)
	}
	return r.settlement, r.err
}

// chargeDifference charges or gives back the difference between estimate and actual.
func (r *Reservation) chargeDifference(ctx context.Context, actual int64) (Settlement, error) {
	s, unused := Settlement{Charged: r.estimate}, r.estimate-actual
	switch {
	case unused < 0:
		s.Charged = actual
		_, err := r.by.limiter.Add(ctx, r.key, -unused)
		if err == nil {
			s.Added = -unused
		}
		return s, err
	case unused == 0:
		return s, nil
	case !time.Now().Before(r.expires):
		return s, ErrExpired
	case r.result.Receipt.N < unused: // a layer has allowed the take without a charge
		return s, nil
	}
	refund := r.result
	refund.Receipt.N = unused
	done, err := r.by.limiter.Refund(ctx, r.key, refund)
	if err == nil && done {
		s.Charged, s.Returned = actual, unused
	}
	return s, err
}
