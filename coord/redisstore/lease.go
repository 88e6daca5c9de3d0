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
		r.Lifetime.Microseconds(), r.MinInterval.Microseconds(), keepNumber))
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
	granted, number := r.Int(), r.Int()
	if granted == 1 && r.Done() {
		return number, nil
	}
	denied := &coord.DeniedError{
		Reason: coord.ErrHeld, RetryAfter: time.Duration(number) * time.Microsecond, Soonest: r.Duration(), Holder: r.Text(),
	}
	if r.Int() == 0 {
		denied.Reason = coord.ErrTooSoon
	}
	if !r.Done() || granted != 0 {
		return 0, errUnreadable
	}
	return 0, denied
}

// mayBeGranted reports whether Redis may have granted the lease although Acquire returns err. This is not possible if
// Redis replied with an error, or if the call was not sent.
func mayBeGranted(ctx context.Context, err error) bool {
	return errors.Is(err, ErrNoReply) || ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
}

// Renew implements [coord.LeaseStore].
func (s *Store) Renew(ctx context.Context, user string, r coord.LeaseRequest) error {
	return lostUnless(s.runStatus(ctx, 1, renewScript, leaseName(user), string(r.ID[:]),
		r.Lifetime.Microseconds(), r.MinInterval.Microseconds(), keepNumber))
}

// Release implements [coord.LeaseStore].
func (s *Store) Release(ctx context.Context, user string, r coord.LeaseRequest) error {
	return lostUnless(s.runStatus(ctx, 1, releaseScript, leaseName(user), string(r.ID[:]), r.MinInterval.Microseconds(), keepNumber))
}

// lostUnless returns ErrLost if held is 0, which is a script's reply if the lease has another holder or none.
func lostUnless(held int64, err error) error {
	if err == nil && held == 0 {
		return coord.ErrLost
	}
	return err
}
