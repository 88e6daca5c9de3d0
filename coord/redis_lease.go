package coord

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

func leaseName(user string) string { return "lease:" + user }

// Acquire implements [LeaseStore].
func (s *Redis) Acquire(ctx context.Context, user string, r LeaseRequest) (number int64, err error) {
	if err := checkLease(user, r); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	reply, err := s.run(ctx, acquireScript, 7, leaseName(user), string(r.ID[:]), r.Name,
		r.Lifetime.Microseconds(), r.MaxLife.Microseconds(), r.MinInterval.Microseconds(), remember.Microseconds())
	if err != nil {
		s.giveBack(user, r, err)
		return 0, err
	}
	var bad bool
	verdict, number := reply.int(0, &bad), reply.int(1, &bad)
	denied := &DeniedError{
		Reason: ErrTooSoon, RetryAfter: reply.duration(2, &bad), Soonest: reply.duration(3, &bad),
		Holder: Holder{Name: reply.string(4, &bad), Number: number, Since: reply.time(5, &bad), Until: reply.time(6, &bad)},
	}
	switch {
	case bad || verdict < 0 || verdict > 1:
		return 0, errUnreadable
	case verdict == 1:
		return number, nil
	case denied.Holder.Since.IsZero():
		denied.Holder = Holder{}
	default:
		denied.Reason = ErrHeld
	}
	return 0, denied
}

// giveBack releases what may have been granted to a caller who got err instead. It is one
// more call, bounded by the timeout. If that fails, too, the lease ends by itself.
func (s *Redis) giveBack(user string, r LeaseRequest, err error) {
	var reply redis.Error
	if !errors.As(err, &reply) && !errors.Is(err, ErrForeign) { // those say that nothing was done
		_ = s.Release(context.Background(), user, r)
	}
}

// Renew implements [LeaseStore].
func (s *Redis) Renew(ctx context.Context, user string, r LeaseRequest) (left time.Duration, err error) {
	if err := checkLease(user, r); err != nil {
		return 0, err
	}
	reply, err := s.run(ctx, renewScript, 2, leaseName(user), string(r.ID[:]),
		r.Lifetime.Microseconds(), r.MinInterval.Microseconds(), remember.Microseconds())
	if err != nil {
		return 0, err
	}
	var bad bool
	verdict, left := reply.int(0, &bad), reply.duration(1, &bad)
	switch {
	case bad || verdict < 0 || verdict > 2:
		return 0, errUnreadable
	case verdict == 0:
		return 0, ErrLost
	case verdict == 2:
		return left, ErrMaxLife
	}
	return left, nil
}

// Release implements [LeaseStore].
func (s *Redis) Release(ctx context.Context, user string, r LeaseRequest) error {
	if err := checkLease(user, r); err != nil {
		return err
	}
	reply, err := s.run(ctx, releaseScript, 1, leaseName(user), string(r.ID[:]),
		r.MinInterval.Microseconds(), remember.Microseconds())
	if err != nil {
		return err
	}
	var bad bool
	switch done := reply.int(0, &bad); {
	case bad || done < 0 || done > 1:
		return errUnreadable
	case done == 0:
		return ErrLost
	}
	return nil
}

// Holder implements [LeaseStore].
func (s *Redis) Holder(ctx context.Context, user string) (h Holder, held bool, err error) {
	if err := checkUser(user); err != nil {
		return Holder{}, false, err
	}
	reply, err := s.run(ctx, holderScript, 5, leaseName(user))
	if err != nil {
		return Holder{}, false, err
	}
	var bad bool
	verdict := reply.int(0, &bad)
	h = Holder{Number: reply.int(1, &bad), Name: reply.string(2, &bad), Since: reply.time(3, &bad), Until: reply.time(4, &bad)}
	switch {
	case bad || verdict < 0 || verdict > 1:
		return Holder{}, false, errUnreadable
	case verdict == 0:
		return Holder{}, false, nil
	}
	return h, true, nil
}
