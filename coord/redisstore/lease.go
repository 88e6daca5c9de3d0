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
	number, err = decodeAcquired(s.run(ctx, acquireScript, leaseName(user), string(r.ID[:]), r.Name,
		r.Lifetime.Microseconds(), r.MaxLifetime.Microseconds(), r.MinInterval.Microseconds(), keepNumber))
	if mayBeGranted(ctx, err) {
		go func() { _ = s.Release(context.Background(), user, r) }() // if that fails, the lease expires
	}
	return number, err
}

var keepNumber = coord.KeepNumber.Microseconds()

// decodeAcquired reads the reply of acquire.lua.
func decodeAcquired(r redispipe.Reader, err error) (number int64, _ error) {
	if err != nil {
		return 0, err
	}
	status, number := r.Int(), r.Int()
	if status == 1 && r.Done() {
		return number, nil
	}
	denied := &coord.DeniedError{
		Reason: coord.ErrHeld, RetryAfter: r.Duration(), Soonest: r.Duration(),
		Holder: coord.Holder{Name: r.Text(), Number: number, Since: r.Time(), Until: r.Time()},
	}
	if !r.Done() || status != 0 {
		return 0, errUnreadable
	}
	if denied.Holder.Since.IsZero() {
		denied.Reason, denied.Holder = coord.ErrTooSoon, coord.Holder{}
	}
	return 0, denied
}

// mayBeGranted reports whether Redis may have granted a lease although its caller gets err. That is not possible after an
// error reply, or if the call was not sent.
func mayBeGranted(ctx context.Context, err error) bool {
	return errors.Is(err, ErrNoReply) || ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
}

// Renew implements [coord.LeaseStore].
func (s *Store) Renew(ctx context.Context, user string, r coord.LeaseRequest) (left time.Duration, err error) {
	got, err := s.run(ctx, renewScript, leaseName(user), string(r.ID[:]),
		r.Lifetime.Microseconds(), r.MinInterval.Microseconds(), keepNumber)
	if err != nil {
		return 0, err
	}
	status, left := got.Int(), got.Duration()
	switch {
	case !got.Done() || status < 0 || status > 2:
		return 0, errUnreadable
	case status == 0:
		return 0, coord.ErrLost
	case status == 2:
		return left, coord.ErrMaxLifetime
	}
	return left, nil
}

// Release implements [coord.LeaseStore].
func (s *Store) Release(ctx context.Context, user string, r coord.LeaseRequest) error {
	released, err := s.runStatus(ctx, 1, releaseScript, leaseName(user), string(r.ID[:]), r.MinInterval.Microseconds(), keepNumber)
	if err == nil && released == 0 {
		return coord.ErrLost
	}
	return err
}

// Holder implements [coord.LeaseStore].
func (s *Store) Holder(ctx context.Context, user string) (h coord.Holder, held bool, err error) {
	r, err := s.run(ctx, holderScript, leaseName(user))
	if err != nil {
		return coord.Holder{}, false, err
	}
	status := r.Int()
	if status == 0 && r.Done() {
		return coord.Holder{}, false, nil
	}
	h = coord.Holder{Number: r.Int(), Name: r.Text(), Since: r.Time(), Until: r.Time()}
	if !r.Done() || status != 1 {
		return coord.Holder{}, false, errUnreadable
	}
	return h, true, nil
}
