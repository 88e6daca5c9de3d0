package coord

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Lease is the right to work for a user, alone, for a time. All methods may be called
// concurrently.
type Lease struct {
	leases  *Leases
	user    string
	request LeaseRequest
	number  int64

	ctx    context.Context         // is leaseContext around ended
	ended  context.Context         // ends with the lease
	cancel context.CancelCauseFunc // ends ended; under mu, so that no renewal comes between

	mu       sync.Mutex
	deadline time.Time // has a monotonic clock's reading; over from then on
	timer    *time.Timer

	releasing sync.Mutex // held during a Release
	released  bool       // in the store, too; under releasing
}

func newLease(leases *Leases, user string, r LeaseRequest, number int64, deadline time.Time) *Lease {
	l := &Lease{
		leases: leases, user: user, request: r, number: number,
		deadline: deadline,
	}
	l.ended, l.cancel = context.WithCancelCause(context.Background())
	l.ctx = leaseContext{l.ended, l, l.cancel}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(time.Until(deadline), func() { l.over() })
	return l
}

// User returns whose lease it is.
func (l *Lease) User() string { return l.user }

// Number returns the fencing number: larger than that of every lease of this user before.
// It goes with everything that the worker writes, so that who stores it can refuse a
// number below the largest it has seen: it is of a worker that has not noticed its end.
func (l *Lease) Number() int64 { return l.number }

// Deadline returns when the lease ends if it is not renewed, by this machine's clock. It is
// earlier than in the store.
func (l *Lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline
}

// Context returns a context that ends with the lease, at its deadline at the latest. Its
// cause is then ErrEnded, ErrLost or ErrReleased. It has no values, and is not
// derived from that of Acquire; see [Lease.Run] for one that is.
//
// Its Err looks at the clock, so that a process that was stopped finds the end as soon as
// it asks, even before Done is closed.
func (l *Lease) Context() context.Context { return l.ctx }

// Renew prolongs the lease to Lifetime from now, within MaxLife. The error is ErrMaxLife if
// it lasts until then already, and otherwise what ended it: ErrEnded, ErrLost or
// ErrReleased. After ErrStore, or the end of ctx, it lasts at least as long as before.
func (l *Lease) Renew(ctx context.Context) error {
	if l.over() {
		return context.Cause(l.ended)
	}
	sent := time.Now()
	left, err := l.leases.store.Renew(ctx, l.user, l.request)
	switch {
	case errors.Is(err, ErrLost):
		l.end(ErrLost)
		return context.Cause(l.ended)
	case err != nil && !errors.Is(err, ErrMaxLife):
		return err
	}
	if !l.prolong(sent.Add(left - l.leases.o.Margin)) {
		return context.Cause(l.ended)
	}
	return err
}

// prolong moves the deadline, and reports whether the lease had not ended before.
func (l *Lease) prolong(deadline time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.overLocked() {
		return false
	}
	if deadline.After(l.deadline) {
		l.deadline = deadline
		l.timer.Reset(time.Until(deadline))
	}
	return true
}

// Release ends the lease, first here and then in the store, so that others need not wait
// for its end. It returns nil also if it was released before, ErrLost if it had ended
// there, and ErrStore if the store did not hear of it: then it may be called again, or the
// lease ends by itself. It waits no longer than the store does.
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
		l.leases.lines.freed(l.user)
	}
	return err
}

// end ends the lease here, unless it has ended before.
func (l *Lease) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.overLocked() // if it is, for that reason
	l.cancel(cause)
	l.timer.Stop()
}

// over reports whether the lease has ended.
func (l *Lease) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.overLocked()
}

func (l *Lease) overLocked() bool {
	if !time.Now().Before(l.deadline) {
		l.cancel(ErrEnded)
	}
	return l.ended.Err() != nil
}

// leaseContext is a context that ends with a lease. It hands out the Done and the values of
// the one inside, so that what is derived from it needs no goroutine.
type leaseContext struct {
	context.Context
	lease  *Lease
	cancel context.CancelCauseFunc // of the context inside
}

// Err is that of the context inside, after a look at the clock.
func (c leaseContext) Err() error {
	if c.lease.over() {
		c.cancel(context.Cause(c.lease.ended))
	}
	return c.Context.Err()
}
