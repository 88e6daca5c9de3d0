package layer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// refill is a call that takes an allotment.
type refill struct {
	op   ratelimit.Op
	sent time.Duration // by the layer's clock
	void bool          // the counter was reset meanwhile; guarded by keyState.mu

	done chan struct{} // closed when the call has ended
	err  error         // read after done is closed
}

// startRefill starts a call that takes an allotment and n units for a waiting take. It does nothing if such a call
// or a reset of the key is in flight, an allotment is not worth it, or the layer is closed. The caller holds k.mu.
func (l *prepaidLayer) startRefill(k *keyState, n int64, now time.Duration) {
	units := k.unitsToPrepay(n, now)
	l.mu.Lock()
	defer l.mu.Unlock()
	if units == 0 || k.refill != nil || k.removed || l.closed || l.resets[k.key] > 0 {
		return
	}
	c := &refill{sent: now, done: make(chan struct{}), op: ratelimit.Op{
		Rule: k.rule, Key: k.key, N: units, Kind: ratelimit.Take, Prepaid: k.lifetime,
	}}
	k.refill = c
	l.running.Go(func() { l.runRefill(k, c) })
}

// runRefill makes the call. If the store calls runtime.Goexit, the waiting callers get an error.
func (l *prepaidLayer) runRefill(k *keyState, c *refill) {
	var res ratelimit.Result
	c.err = fmt.Errorf("%w: it ended the goroutine of its call", ratelimit.ErrStore)
	defer func() { l.finishRefill(k, c, &res) }()
	c.err = l.call(func(ctx context.Context) (err error) {
		res, err = l.inner.DoOne(ctx, c.op)
		return err
	})
}

// call calls the store within the Timeout. A panic of the store becomes an error.
func (l *prepaidLayer) call(do func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), l.o.Timeout,
		fmt.Errorf("%w: no prepaid units within %v", ratelimit.ErrStore, l.o.Timeout))
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it panicked: %v", ratelimit.ErrStore, p)
		}
	}()
	return do(ctx)
}

// finishRefill installs the allotment that a call has taken, and wakes the waiting callers.
func (l *prepaidLayer) finishRefill(k *keyState, c *refill, res *ratelimit.Result) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer close(c.done)
	k.refill = nil
	if c.err != nil {
		return
	}
	k.remaining = res.Remaining
	if !res.Allowed || c.void { // a reset has undone the charge
		return
	}
	now := l.sinceStart()
	a := newAllotment(c, res, now)
	if now < a.end {
		l.install(k, a, now)
		return
	}
	// The store is too slow for allotments. The demand has to grow again before the next one.
	k.demand = demand{}
	l.giveBack(k, a, now)
}

// newAllotment returns the allotment that a call has taken.
func newAllotment(c *refill, res *ratelimit.Result, now time.Duration) *allotment {
	valid := c.op.ValidFor(*res)
	a := &allotment{size: c.op.N, renewAt: c.op.N / 2, taken: *res, takenAt: now}
	a.end = c.sent + valid - valid/1000 // the store's clock may be that much faster
	a.renewTime = a.end
	if valid >= c.op.Prepaid-time.Microsecond { // unless the bucket or window ends
		a.renewTime -= c.op.Prepaid / 4
	}
	a.left.Store(a.size)
	return a
}

// install adds an allotment to a key. The caller holds k.mu.
func (l *prepaidLayer) install(k *keyState, a *allotment, now time.Duration) {
	l.advance(k, now)
	if k.current.Load() == nil {
		k.current.Store(a)
	} else {
		if k.next != nil { // both were too small for a take
			l.giveBack(k, k.next, now)
		}
		k.next = a
	}
	l.setTimer(k, now)
}

// advance replaces the current allotment with the next one if it is spent or has expired. The caller holds k.mu.
func (l *prepaidLayer) advance(k *keyState, now time.Duration) {
	a := k.current.Load()
	if a.available(now) > 0 || a == nil && k.next == nil {
		return
	}
	next := k.next
	if a != nil {
		l.giveBack(k, a, now)
	}
	k.current.Store(next)
	k.next = nil
}

// expire ends the allotments of a key that have expired. It forgets an idle key, and otherwise sets the timer again.
func (l *prepaidLayer) expire(k *keyState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := l.sinceStart()
	for _, a := range k.allotments() {
		if now >= a.end {
			l.giveBack(k, a, now)
		}
	}
	if k.idle(now) {
		l.forget(k)
	} else if !k.removed {
		l.setTimer(k, now)
	}
}

// setTimer sets the key's timer to the end of its first allotment, or to a lifetime from now. The caller holds k.mu.
func (l *prepaidLayer) setTimer(k *keyState, now time.Duration) {
	wait := k.lifetime
	for _, a := range k.allotments() {
		wait = min(wait, a.end-now)
	}
	k.timer.Reset(wait)
}

// giveBack ends an allotment and gives its unspent units back to the store in the background. The caller holds k.mu.
func (l *prepaidLayer) giveBack(k *keyState, a *allotment, now time.Duration) {
	n := k.drop(a, now)
	if n == 0 {
		return
	}
	op := k.refundOp(a, n)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		l.refunds = append(l.refunds, op)
		return
	}
	l.running.Go(func() { _ = l.refund([]ratelimit.Op{op}) })
}

// refund sends refunds once: a refund whose reply is lost may have been made.
func (l *prepaidLayer) refund(ops []ratelimit.Op) error {
	err := l.call(func(ctx context.Context) error { _, err := l.inner.Do(ctx, ops); return err })
	if err != nil {
		return fmt.Errorf("layer: unspent units of %d allotments stay charged: %w", len(ops), err)
	}
	return nil
}

// giveAllBack ends all allotments after the layer was closed.
func (l *prepaidLayer) giveAllBack() (err error) {
	l.running.Wait()
	for _, states := range l.keys.Range {
		for _, k := range states.([]*keyState) {
			l.endAllotments(k)
		}
	}
	l.mu.Lock()
	refunds := l.refunds
	l.mu.Unlock()
	for ops := range slices.Chunk(refunds, 128) {
		err = errors.Join(err, l.refund(ops))
	}
	return err
}

// endAllotments ends the allotments of a key and forgets it.
func (l *prepaidLayer) endAllotments(k *keyState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer.Stop()
	for _, a := range k.allotments() {
		l.giveBack(k, a, l.sinceStart())
	}
	l.forget(k)
}
