package layer

import (
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// refillCall is a call that takes a lease.
type refillCall struct {
	op   ratelimit.Op
	sent time.Duration // by the layer's clock
	void bool          // the counter was reset meanwhile; guarded by keyState.mu

	done chan struct{} // closed when the call has ended
	err  error         // of the call; read after done is closed
}

// startRefill starts a call that takes a lease and n units more, unless one is in flight, a lease
// is not worth it, or the layer is closed. The caller holds k.mu.
func (l *leaseLayer) startRefill(k *keyState, n int64, now time.Duration) {
	units := k.unitsToLease(n, now)
	l.mu.Lock()
	defer l.mu.Unlock()
	if units == 0 || k.refill != nil || k.removed || l.closed {
		return
	}
	c := &refillCall{sent: now, done: make(chan struct{}), op: ratelimit.Op{
		Rule: k.rule.rule, Key: k.key, N: units, Kind: ratelimit.Take, Prepaid: k.rule.lifetime,
	}}
	k.refill = c
	l.running.Go(func() { l.runRefill(k, c) })
}

// runRefill makes the call. After a panic, the callers that wait call the store themselves, and
// get its panic. It ends properly even if the store calls runtime.Goexit.
func (l *leaseLayer) runRefill(k *keyState, c *refillCall) {
	ctx, cancel := l.background()
	defer cancel()
	var res ratelimit.Result
	c.err = fmt.Errorf("%w: it ended the goroutine of its call", ratelimit.ErrStore)
	defer func() {
		if recover() != nil {
			res, c.err = ratelimit.Result{Remaining: unknown}, nil
		}
		l.finishRefill(k, c, &res)
	}()
	res, c.err = l.inner.DoOne(ctx, c.op)
}

// finishRefill installs the lease that a call has taken, and wakes the callers that wait.
func (l *leaseLayer) finishRefill(k *keyState, c *refillCall, res *ratelimit.Result) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer close(c.done)
	k.refill = nil
	if c.err != nil {
		return
	}
	k.remaining = res.Remaining
	if !res.Allowed || c.void { // a reset took the lease's charge back, too
		return
	}
	now := l.sinceStart()
	h := newHeldLease(k.rule, c, res, now)
	if now < h.end {
		l.install(k, h, now)
		return
	}
	// A store this slow makes leases useless. Demand has to grow anew.
	k.demand = demand{}
	l.giveBack(k, h, now)
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

// expire ends the leases of a key whose time has come, forgets an idle key, and otherwise
// schedules the next call.
func (l *leaseLayer) expire(k *keyState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := l.sinceStart()
	for _, h := range k.leases() {
		if now >= h.end {
			l.giveBack(k, h, now)
		}
	}
	if k.idle(now) {
		l.forgetKey(k)
	} else if !k.removed {
		l.setTimer(k, now)
	}
}

// setTimer sets the key's timer to the end of its first lease, or to a lifetime from now. The
// caller holds k.mu.
func (l *leaseLayer) setTimer(k *keyState, now time.Duration) {
	wait := k.rule.lifetime
	for _, h := range k.leases() {
		wait = min(wait, h.end-now)
	}
	k.timer.Reset(wait)
}

// giveBack ends a lease and gives its unspent units back to the store, in the background. What
// ends while a call is in flight goes back in the next one. The caller holds k.mu.
func (l *leaseLayer) giveBack(k *keyState, h *heldLease, now time.Duration) {
	n := k.drop(h, now)
	if n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refunds = append(l.refunds, k.refundOp(h, n))
	if !l.refunding && !l.closed {
		l.refunding = true
		l.running.Go(func() { _ = l.sendRefunds() })
	}
}

// sendRefunds gives units back until none are left to give. Each refund is sent once: one whose
// reply was lost may have been made.
func (l *leaseLayer) sendRefunds() (err error) {
	const batch = 128
	for {
		l.mu.Lock()
		ops := l.refunds[:min(batch, len(l.refunds))]
		l.refunds = l.refunds[len(ops):]
		l.refunding = len(ops) > 0
		l.mu.Unlock()
		if len(ops) == 0 {
			return err
		}
		if e := l.refund(ops); e != nil {
			err = fmt.Errorf("layer: unspent units of %d leases stay charged: %w", len(ops), e)
		}
	}
}

func (l *leaseLayer) refund(ops []ratelimit.Op) (err error) {
	ctx, cancel := l.background()
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it panicked: %v", ratelimit.ErrStore, p)
		}
	}()
	_, err = l.inner.Do(ctx, ops)
	return err
}

// forgetKey forgets a key. The caller holds k.mu.
func (l *leaseLayer) forgetKey(k *keyState) {
	if k.removed {
		return
	}
	k.removed = true
	k.rule.keys.Delete(k.key)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys--
}

// endLeases ends the leases of a key, and forgets it.
func (l *leaseLayer) endLeases(k *keyState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer.Stop()
	for _, h := range k.leases() {
		l.giveBack(k, h, l.sinceStart())
	}
	l.forgetKey(k)
}
