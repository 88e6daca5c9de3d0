package coord

import (
	"context"
	"errors"
	"time"
)

// Run acquires the lease of a user and calls fn under it, like [Leases.Acquire] and [Lease.Run]. If
// the lease is not free, the error is a *[DeniedError].
func Run(ctx context.Context, leases *Leases, user string, fn func(ctx context.Context) error) error {
	lease, err := leases.Acquire(ctx, user)
	if err != nil {
		return err
	}
	return lease.Run(ctx, fn)
}

// Run calls fn under the lease and releases the lease when fn returns or panics. Until then it renews
// the lease three times in each Lifetime, up to MaxLifetime. The context of fn has the values of ctx
// and ends with ctx or the lease, whichever is first. Then fn has to return: Run cannot stop it, and
// another worker may begin.
//
// Run returns fn's error. If that is nil although the lease ended before fn returned, Run returns
// ErrEnded or ErrLost, since fn may not have been alone at the end. If the lease had ended before,
// Run does not call fn.
func (l *Lease) Run(ctx context.Context, fn func(ctx context.Context) error) error {
	defer func() { _ = l.Release() }() // if it fails, the lease expires
	if l.hasEnded() {
		return context.Cause(l.ended)
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ended, func() { cancel(context.Cause(l.ended)) })()
	renewing, stop := context.WithCancel(l.ctx)
	defer stop() // without waiting for a renewal in flight
	if l.request.MaxLifetime > l.request.Lifetime {
		go l.keepRenewing(renewing)
	}
	err := fn(leaseContext{inner, l, cancel})
	if err == nil && l.hasEnded() {
		return context.Cause(l.ended)
	}
	return err
}

func (l *Lease) keepRenewing(ctx context.Context) {
	tick := time.NewTicker(l.request.Lifetime / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			// A store that fails may work again at the next tick.
			if errors.Is(l.Renew(ctx), ErrMaxLifetime) {
				return
			}
		}
	}
}
