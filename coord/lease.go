package coord

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Lease is the exclusive right to work for a user for some time. All methods are safe for concurrent use.
type Lease struct {
	leases  *Leases
	user    string
	request LeaseRequest
	number  int64
	latest  time.Time // the latest deadline that a renewal can set

	ctx    context.Context         // a leaseContext around ended
	ended  context.Context         // ends with the lease
	cancel context.CancelCauseFunc // ends the context ended; called under mu, so that no renewal runs at the same time

	mu       sync.Mutex
	deadline time.Time // has a monotonic clock reading
	timer    *time.Timer
	failure  error // the store's error if the latest renewal failed; for the text of the cause

	releasing sync.Mutex // held during a Release
	released  bool       // whether the store has released the lease; guarded by releasing
}

// newLease returns the lease that the store has granted. sent is the time before the call of Acquire.
func newLease(leases *Leases, user string, r LeaseRequest, number int64, sent time.Time) *Lease {
	o := &leases.o
	l := &Lease{
		leases: leases, user: user, request: r, number: number,
		deadline: sent.Add(o.Lifetime - o.Margin), latest: sent.Add(o.MaxLifetime - o.Margin),
	}
	l.ended, l.cancel = context.WithCancelCause(context.Background())
	l.ctx = leaseContext{l.ended, l, l.cancel}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(time.Until(l.deadline), func() { l.hasEnded() })
	return l
}

// User returns the user of the lease.
func (l *Lease) User() string { return l.user }

// Number returns the fencing number, which is larger than the numbers of all earlier leases of this user. Send it
// with every write of the worker. The target of the writes must refuse a number below the largest that it has seen,
// because such a write comes from a worker that has not noticed the end of its lease.
func (l *Lease) Number() int64 { return l.number }

// Deadline returns the time at which the lease ends if it is not renewed, by this machine's clock. In the store, the
// lease ends later.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline
}

// Context returns a context that ends with the lease, at the deadline at the latest. Its cause wraps ErrEnded, ErrLost
// or ErrReleased. The text of an ErrEnded says why the latest renewal failed. The context has no values, and does not
// derive from the context of Acquire. The context of [Lease.Run] derives from the caller's context.
//
// The context's Err method reads the clock. So a process that was paused notices the end of the lease at its first
// check, even before Done is closed.
func (l *Lease) Context() context.Context { return l.ctx }

// Renew extends the lease to Lifetime from now, within MaxLifetime. It returns ErrMaxLifetime if the lease cannot be
// extended any more, and ErrEnded, ErrLost or ErrReleased if the lease has ended. After ErrStore, or the end of ctx,
// the lease lasts at least as long as before.
func (l *Lease) Renew(ctx context.Context) error {
	if l.hasEnded() {
		return context.Cause(l.ended)
	}
	if !l.Deadline().Before(l.latest) {
		return ErrMaxLifetime
	}
	margin, sent, r := l.leases.o.Margin, time.Now(), l.request
	r.Lifetime = min(r.Lifetime, l.latest.Sub(sent)+margin)
	switch err := l.leases.store.Renew(ctx, l.user, r); {
	case errors.Is(err, ErrLost):
		l.end(ErrLost)
	case err != nil:
		l.setFailure(err)
		return err
	case l.extend(sent.Add(r.Lifetime - margin)):
		return nil
	}
	return context.Cause(l.ended)
}

func (l *Lease) setFailure(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = err
}

// extend moves the deadline to a later time. It returns false if the lease has ended.
func (l *Lease) extend(deadline time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hasEndedLocked() {
		return false
	}
	l.failure = nil
	if deadline.After(l.deadline) {
		l.deadline = deadline
		l.timer.Reset(time.Until(deadline))
	}
	return true
}

// Release ends the lease, first in this process and then in the store. Other workers then need not wait for the
// deadline. Release returns nil if the lease was released before, ErrLost if it had ended in the store, and ErrStore
// if the store failed. After ErrStore, call Release again or let the lease expire.
func (l *Lease) Release() error {
	l.end(ErrReleased)
	l.releasing.Lock()
	defer l.releasing.Unlock()
	if l.released {
		return nil
	}
	err := l.leases.store.Release(context.Background(), l.user, l.request)
	if err == nil || errors.Is(err, ErrLost) {
		l.released = true
		l.leases.waiters.wake(l.user)
	}
	return err
}

// Run calls fn and releases the lease when fn returns or panics. Until then, it renews the lease three times in each
// Lifetime, up to MaxLifetime. The context of fn has the values of ctx. It ends with ctx or with the lease. When it
// ends, fn has to return, because Run cannot stop fn and another worker may begin.
//
// Run returns fn's error. If fn returns nil but the lease ended first, Run returns ErrEnded, ErrLost or ErrReleased,
// because another worker may have run at the same time. If the lease has ended before the call, Run does not call fn.
func (l *Lease) Run(ctx context.Context, fn func(ctx context.Context) error) error {
	defer func() { _ = l.Release() }() // if it fails, the lease expires
	if l.hasEnded() {
		return context.Cause(l.ended)
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.ended, func() { cancel(context.Cause(l.ended)) })()
	renewing, stop := context.WithCancel(l.ctx)
	defer stop() // does not wait for a renewal in flight
	if l.Deadline().Before(l.latest) {
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
			if errors.Is(l.Renew(ctx), ErrMaxLifetime) { // after another error, the next tick tries again
				return
			}
		}
	}
}

// end ends the lease in this process, unless it has already ended.
func (l *Lease) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hasEndedLocked() // sets the cause ErrEnded if the deadline has passed
	l.cancel(cause)
	l.timer.Stop()
}

func (l *Lease) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hasEndedLocked()
}

// hasEndedLocked reports whether the lease has ended. If the deadline has passed, it ends the lease first. The caller
// holds l.mu.
func (l *Lease) hasEndedLocked() bool {
	if !time.Now().Before(l.deadline) {
		err := ErrEnded
		if l.failure != nil {
			err = fmt.Errorf("%w: the latest renewal failed: %v", ErrEnded, l.failure) // does not wrap ErrStore
		}
		l.cancel(err)
	}
	return l.ended.Err() != nil
}

// leaseContext is a context that ends with a lease. It uses the Done channel and the values of the inner context, so
// contexts that derive from it need no goroutine.
type leaseContext struct {
	context.Context
	lease  *Lease
	cancel context.CancelCauseFunc // cancels the inner context
}

// Err returns the inner context's error, and ends that context first if the lease has ended.
func (c leaseContext) Err() error {
	if c.lease.hasEnded() {
		c.cancel(context.Cause(c.lease.ended))
	}
	return c.Context.Err()
}
