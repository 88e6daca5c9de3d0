package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/internal/redispipe"
)

func leaseName(user string) string { return "lease:" + user }

// Acquire implements [coord.LeaseStore].
func (s *Store) Acquire(ctx context.Context, user string, r coord.LeaseRequest) (number int64, err error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	number, err = acquired(s.run(ctx, acquireScript, leaseName(user), string(r.ID[:]), r.Name,
		r.Lifetime.Microseconds(), r.MaxLife.Microseconds(), r.MinInterval.Microseconds(), r.KeepNumber.Microseconds()))
	if mayBeGranted(ctx, err) {
		go s.giveBack(user, r)
	}
	return number, err
}

// acquired reads the reply of the acquire script.
func acquired(r *reply, err error) (number int64, _ error) {
	if err != nil {
		return 0, err
	}
	verdict, number := r.int(), r.int()
	if verdict == 1 && r.end() == nil {
		return number, nil
	}
	denied := &coord.DeniedError{
		Reason: coord.ErrHeld, RetryAfter: r.duration(), Soonest: r.duration(),
		Holder: coord.Holder{Name: r.string(), Number: number, Since: r.time(), Until: r.time()},
	}
	if r.end() != nil || verdict != 0 {
		return 0, errUnreadable
	}
	if denied.Holder.Since.IsZero() {
		denied.Reason, denied.Holder = coord.ErrTooSoon, coord.Holder{}
	}
	return 0, denied
}

// mayBeGranted reports whether the store may have granted a lease to a caller who gets err.
// Of the errors of Redis, a call that was not sent and an error reply say that it did not.
func mayBeGranted(ctx context.Context, err error) bool {
	return errors.Is(err, ErrNoReply) || errors.Is(err, redispipe.ErrUnreadable) ||
		ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
}

// giveBack releases a lease that may have been granted. If that fails, the lease ends by
// itself.
func (s *Store) giveBack(user string, r coord.LeaseRequest) {
	_ = s.Release(context.Background(), user, r)
}

// Renew implements [coord.LeaseStore].
func (s *Store) Renew(ctx context.Context, user string, r coord.LeaseRequest) (left time.Duration, err error) {
	got, err := s.run(ctx, renewScript, leaseName(user), string(r.ID[:]),
		r.Lifetime.Microseconds(), r.MinInterval.Microseconds(), r.KeepNumber.Microseconds())
	if err != nil {
		return 0, err
	}
	verdict, left := got.int(), got.duration()
	switch {
	case got.end() != nil || verdict < 0 || verdict > 2:
		return 0, errUnreadable
	case verdict == 0:
		return 0, coord.ErrLost
	case verdict == 2:
		return left, coord.ErrMaxLife
	}
	return left, nil
}

// Release implements [coord.LeaseStore].
func (s *Store) Release(ctx context.Context, user string, r coord.LeaseRequest) error {
	got, err := s.run(ctx, releaseScript, leaseName(user), string(r.ID[:]),
		r.MinInterval.Microseconds(), r.KeepNumber.Microseconds())
	if err != nil {
		return err
	}
	switch released := got.int(); {
	case got.end() != nil || released < 0 || released > 1:
		return errUnreadable
	case released == 0:
		return coord.ErrLost
	}
	return nil
}

// Holder implements [coord.LeaseStore].
func (s *Store) Holder(ctx context.Context, user string) (h coord.Holder, held bool, err error) {
	r, err := s.run(ctx, holderScript, leaseName(user))
	if err != nil {
		return coord.Holder{}, false, err
	}
	verdict := r.int()
	if verdict == 0 && r.end() == nil {
		return coord.Holder{}, false, nil
	}
	h = coord.Holder{Number: r.int(), Name: r.string(), Since: r.time(), Until: r.time()}
	if r.end() != nil || verdict != 1 {
		return coord.Holder{}, false, errUnreadable
	}
	return h, true, nil
}
