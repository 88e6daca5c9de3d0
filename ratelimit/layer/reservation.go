package layer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// ErrReservationExpired means that a reservation was settled when its life was over.
// Nothing of it was given back: what was reserved stays charged.
var ErrReservationExpired = errors.New("layer: reservation has expired")

// ReservationOptions configure [Reservations]. The zero value is usable.
type ReservationOptions struct {
	// Life is how long a reservation can be settled; afterwards nothing of it is given
	// back. The default is the rule's Per, after which there is nothing to give back but
	// of buckets that count over a longer span.
	Life time.Duration
}

// Reservations takes what something will cost by estimate, and settles it when the cost
// is known: for tokens of a language model, bytes of a reply, rows of a query. It is
// immutable and safe for concurrent use.
type Reservations struct {
	one  func(context.Context, ratelimit.Op) (ratelimit.Result, error)
	rule ratelimit.Rule
	life time.Duration
}

// NewReservations returns reservations of the quota of rule in store, which may have
// layers. An error names what is wrong.
func NewReservations(store ratelimit.Store, rule ratelimit.Rule, o ReservationOptions) (*Reservations, error) {
	switch {
	case store == nil:
		return nil, errors.New("layer: NewReservations: store is nil")
	case rule.Limit() == 0:
		return nil, fmt.Errorf("layer: NewReservations: %v has no limit", rule)
	}
	if err := option.Duration("layer", "ReservationOptions.Life", o.Life, 0); err != nil {
		return nil, err
	}
	if o.Life == 0 {
		o.Life = rule.Per()
	}
	return &Reservations{one: storage.DoOne(store), rule: rule, life: o.Life}, nil
}

// Reserve takes estimate units of key. If there are not so many, the reservation's Result
// is a denial and nothing is charged. Its errors are those of a take.
func (r *Reservations) Reserve(ctx context.Context, key string, estimate int64) (*Reservation, error) {
	began := time.Now()
	res, err := r.one(ctx, ratelimit.Op{Rule: r.rule, Key: key, N: estimate, Kind: ratelimit.Take})
	if err != nil {
		return nil, err
	}
	return &Reservation{
		of: r, key: key, estimate: estimate, result: res,
		expires: began.Add(r.life), turn: make(chan struct{}, 1),
	}, nil
}

// Reservation is units that were taken before it was known how many it would be. It is
// settled once, by Commit or Cancel; until then, and if it never is, all of them stay
// charged. It is safe for concurrent use, holds nothing but memory, and needs no closing.
type Reservation struct {
	of       *Reservations
	key      string
	estimate int64
	result   ratelimit.Result
	expires  time.Time

	turn    chan struct{} // full while somebody settles; guards what follows
	settled bool
	outcome Settlement
	err     error
}

// Settlement is what a reservation came to, in units: Charged is the estimate, without what
// was Returned, and with what was Added.
type Settlement struct {
	Charged, Returned, Added int64
}

// Result returns the result of the take: whether the units are reserved, and if not, when
// they might be.
func (r *Reservation) Result() ratelimit.Result { return r.result }

// Commit says that it was actual units, 0 or more, and settles the reservation. What was
// reserved beyond is given back; what is missing is charged whatever the limit, since it
// has been used, and counts against those who come next.
//
// Giving back is what a Refund is, and not always possible: a fixed window takes units
// back until it ends, buckets and logs while the charge is kept, and a GCRA only if nothing
// was charged since. The rest stays charged; the settlement says how much.
//
// Whoever settles first decides. Further calls of Commit and Cancel, with whatever
// arguments, wait for it, return the same and ask no store. That holds for an error of the
// store, too, which may have done what it was asked: it isn't asked twice, and Charged is
// then the most that it can be. It is so for the end of ctx, except that a ctx which had
// ended before is only that caller's error. A reservation that was denied is a
// [*ratelimit.DeniedError], and an actual below 0 [ratelimit.ErrOp].
//
// When the reservation has expired and there would be something to give back, that is
// [ErrReservationExpired].
func (r *Reservation) Commit(ctx context.Context, actual int64) (Settlement, error) {
	switch {
	case actual < 0:
		return Settlement{}, fmt.Errorf("%w: %d units used, want at least 0", ratelimit.ErrOp, actual)
	case !r.result.Allowed:
		return Settlement{}, r.result.Err()
	}
	return r.settle(ctx, actual)
}

// Cancel settles the reservation as one of which nothing was used, as Commit of 0 does. If
// it was denied, there is nothing to cancel, which is no error.
func (r *Reservation) Cancel(ctx context.Context) (Settlement, error) {
	if !r.result.Allowed {
		return Settlement{}, nil
	}
	return r.settle(ctx, 0)
}

// settle settles unless somebody has, or says why it can't.
func (r *Reservation) settle(ctx context.Context, actual int64) (Settlement, error) {
	if ctx.Err() != nil {
		return Settlement{}, context.Cause(ctx)
	}
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return Settlement{}, context.Cause(ctx)
	}
	defer func() { <-r.turn }()
	if !r.settled {
		r.settled = true
		r.err = errUnsettled // for the next, if the store panics
		r.outcome = Settlement{Charged: max(r.estimate, actual)}
		r.outcome, r.err = r.pay(ctx, actual)
	}
	return r.outcome, r.err
}

var errUnsettled = fmt.Errorf("%w: it panicked while a reservation was settled", ratelimit.ErrStore)

// pay asks the store for the difference.
func (r *Reservation) pay(ctx context.Context, actual int64) (Settlement, error) {
	switch all := (Settlement{Charged: r.estimate}); {
	case actual > r.estimate:
		return r.add(ctx, actual-r.estimate)
	case actual == r.estimate:
		return all, nil
	case !time.Now().Before(r.expires):
		return all, ErrReservationExpired
	default:
		return r.giveBack(ctx, r.estimate-actual)
	}
}

func (r *Reservation) add(ctx context.Context, n int64) (Settlement, error) {
	_, err := r.of.one(ctx, ratelimit.Op{Rule: r.of.rule, Key: r.key, N: n, Kind: ratelimit.Add})
	s := Settlement{Charged: r.estimate + n}
	if err == nil {
		s.Added = n
	}
	return s, err
}

// giveBack refunds a part of the charge, if the result tells of one: what a layer has
// answered may have charged nothing.
func (r *Reservation) giveBack(ctx context.Context, n int64) (Settlement, error) {
	s := Settlement{Charged: r.estimate}
	part := r.result.Receipt
	if part.N < n {
		return s, nil
	}
	part.N = n
	res, err := r.of.one(ctx, ratelimit.Op{Rule: r.of.rule, Key: r.key, Kind: ratelimit.Refund, Receipt: part})
	if err == nil && res.Allowed {
		s.Charged, s.Returned = r.estimate-n, n
	}
	return s, err
}
