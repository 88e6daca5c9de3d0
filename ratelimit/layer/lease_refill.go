package layer

import (
	"context"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// refillCall is a call that takes a lease.
type refillCall struct {
	done    chan struct{} // closed when the call has ended
	granted bool          // there is a new lease; read after done is closed, as err
	err     error         // of the call
	void    bool          // the counter was reset meanwhile; guarded by keyState.mu

	op   ratelimit.Op
	sent time.Duration // by the layer's clock
}

// startRenewal takes the next lease while the current one is spent.
func (l *leaseLayer) startRenewal(k *keyState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := l.sinceStart()
	if k.refill != nil || k.next.available(now) > 0 {
		return
	}
	if units := k.unitsToTake(0, now); units > 0 {
		l.startRefill(k, units)
	}
}

// startRefill starts a call that takes units. It returns nil if MaxCalls are in flight, or the
// layer is closed. The caller holds k.mu.
func (l *leaseLayer) startRefill(k *keyState, units int64) *refillCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || k.removed {
		return nil
	}
	select {
	case l.calls <- struct{}{}:
	default:
		return nil
	}
	c := &refillCall{done: make(chan struct{}), op: ratelimit.Op{
		Rule: k.rule.rule, Key: k.key, N: units, Kind: ratelimit.Take, Prepaid: k.rule.lifetime,
	}}
	k.refill = c
	l.running.Go(func() {
		defer func() { <-l.calls }()
		l.runRefill(k, c)
	})
	return c
}

// runRefill makes the call. It ends properly even if the store calls runtime.Goexit.
func (l *leaseLayer) runRefill(k *keyState, c *refillCall) {
	var res ratelimit.Result
	err := fmt.Errorf("%w: it ended the goroutine of its call", ratelimit.ErrStore)
	defer func() { l.finishRefill(k, c, &res, err) }()
	c.sent = l.sinceStart()
	res, err = l.requestLease(c.op)
}

// requestLease calls the store in the background. After a panic, the callers that wait call the
// store themselves, and get its panic.
func (l *leaseLayer) requestLease(op ratelimit.Op) (res ratelimit.Result, err error) {
	ctx, cancel := l.background()
	defer cancel()
	defer func() {
		if recover() != nil {
			res, err = ratelimit.Result{Remaining: unknown}, nil
		}
	}()
	return l.inner.DoOne(ctx, op)
}

// background returns the context of calls that no single caller makes.
func (l *leaseLayer) background() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), l.o.Timeout,
		fmt.Errorf("%w: no lease within %v", ratelimit.ErrStore, l.o.Timeout))
}

// finishRefill installs the lease that a call has taken, and wakes the callers that wait.
func (l *leaseLayer) finishRefill(k *keyState, c *refillCall, res *ratelimit.Result, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer close(c.done)
	k.refill, c.err = nil, err
	if err != nil {
		return
	}
	k.remaining = res.Remaining
	if !res.Allowed {
		return
	}
	now := l.sinceStart()
	h := newHeldLease(k.rule, c, res, now)
	switch {
	case c.void: // its charge was reset, too
	case now >= h.end:
		// A store this slow makes leases useless. Demand has to grow anew.
		k.demand = demand{}
		l.giveBack(k, h, now)
	default:
		c.granted = true
		l.install(k, h, now)
	}
}

// newHeldLease returns the lease that a call has taken.
func newHeldLease(r *leaseRule, c *refillCall, res *ratelimit.Result, now time.Duration) *heldLease {
	valid := c.op.ValidFor(*res)
	h := &heldLease{size: c.op.N, renewAt: c.op.N / 2, taken: *res, takenAt: now}
	h.end = c.sent + valid - valid/1000 // the store's clock may run that much faster
	h.renewTime = h.end
	if valid >= c.op.Prepaid-time.Microsecond { // not if the bucket or window ends
		h.renewTime -= r.lifetime / 4
	}
	h.left.Store(h.size)
	return h
}

// install adds a lease to a key. The caller holds k.mu.
func (l *leaseLayer) install(k *keyState, h *heldLease, now time.Duration) {
	l.switchLease(k, now)
	if k.current.Load() == nil {
		k.current.Store(h)
	} else {
		if k.next != nil { // both were too small for a take
			l.giveBack(k, k.next, now)
		}
		k.next = h
	}
	l.setTimer(k, now)
}

// switchLease ends the current lease if it is spent or its time has come, and replaces it with the
// next one. The caller holds k.mu.
func (l *leaseLayer) switchLease(k *keyState, now time.Duration) {
	h := k.current.Load()
	if h.available(now) > 0 || h == nil && k.next == nil {
		return
	}
	next := k.next
	if h != nil {
		l.giveBack(k, h, now)
	}
	k.current.Store(next)
	k.next = nil
}
