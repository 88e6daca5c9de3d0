package coord

import (
	"context"
	"errors"
	"time"
)

// Run calls fn as the only worker for a user, if there is no other: otherwise the error is a
// *DeniedError. It is Acquire and [Lease.Run].
func Run(ctx context.Context, leases *Leases, user string, fn func(ctx context.Context) error) error {
	lease, err := leases.Acquire(ctx, user)
	if err != nil {
		return err
	}
	return lease.Run(ctx, fn)
}

// Run calls fn under the lease, and releases it when fn returns or panics. If MaxLife allows
// for it, the lease is renewed three times in each Lifetime until then. The context that fn
// gets has the values of ctx, and ends with ctx or the lease, whichever is first. Then fn
// has to return: nothing can make it, and others may begin.
//
// Run returns fn's error. If that is nil although the lease ended before fn did, it returns
// why the lease ended: ErrEnded or ErrLost, since fn may not have been the only one at the
// end. If it had ended before, fn is not called.
func (l *Lease) Run(ctx context.Context, fn func(ctx context.Context) error) error {
	defer func() { _ = l.Release() }() // if it fails, the lease ends by itself
	if l.over() {
		return context.Cause(l.ended)
	}
	ctx, leave := l.within(ctx)
	defer leave()
	defer l.keep()()
	err := fn(ctx)
	if err == nil && l.over() {
		return context.Cause(l.ended)
	}
	return err
}

// within returns a context that ends with ctx, with the lease, or when leave is called.
func (l *Lease) within(ctx context.Context) (both context.Context, leave func()) {
	inside, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ended, func() { cancel(context.Cause(l.ended)) })
	return leaseContext{inside, l, cancel}, func() { stop(); cancel(nil) }
}

// keep renews the lease until stop is called. It ends by itself then: stop doesn't wait for a
// renewal that is under way.
func (l *Lease) keep() (stop func()) {
	ctx, cancel := context.WithCancel(l.ctx)
	if l.request.MaxLife > l.request.Lifetime {
		go l.renewals(ctx)
	}
	return cancel
}

func (l *Lease) renewals(ctx context.Context) {
	tick := time.NewTicker(l.request.Lifetime / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			// A store that fails may be back in time for the next one.
			if errors.Is(l.Renew(ctx), ErrMaxLife) {
				return
			}
		}
	}
}
