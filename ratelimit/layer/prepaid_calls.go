package layer

import (
	"context"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// refill is a call that takes an allotment.
type refill struct {
	op   ratelimit.Op
	sent time.Duration // the time of the call, by the layer's clock
	void bool          // whether the counter was reset during the call; guarded by prepaidLayer.mu

	done chan struct{} // closed when the call has ended
	err  error         // may be read when done is closed
}

// startRefill starts a call that takes an allotment and n units for a waiting take. It does nothing if a refill or a
// reset of the counter is in flight, or if an allotment is not worth it.
func (l *prepaidLayer) startRefill(k *keyState, c counter, n int64, now time.Duration) {
	units := k.unitsToPrepay(n, now)
	if units == 0 || k.refill != nil || l.resets[c] > 0 {
		return
	}
	r := &refill{
		op:   ratelimit.Op{Rule: k.rule, Key: k.key, N: units, Kind: ratelimit.Take, Prepaid: k.lifetime},
		sent: now, done: make(chan struct{}), err: fmt.Errorf("%w: %w", ratelimit.ErrStore, errGoexit),
	}
	k.refill = r
	l.running.Go(func() {
		var res ratelimit.Result
		defer func() { l.finishRefill(k, r, &res) }() // runs even if the store calls runtime.Goexit
		res, r.err = l.call(r.op)
	})
}

// call calls the store within the Timeout. A panic of the store becomes an error.
func (l *prepaidLayer) call(op ratelimit.Op) (res ratelimit.Result, err error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), l.o.Timeout,
		fmt.Errorf("%w: no prepaid units within %v", ratelimit.ErrStore, l.o.Timeout))
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it panicked: %v", ratelimit.ErrStore, p)
		}
	}()
	return l.inner.DoOne(ctx, op)
}

// finishRefill adds the allotment that a call has taken, and wakes the waiting callers.
func (l *prepaidLayer) finishRefill(k *keyState, r *refill, res *ratelimit.Result) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(r.done)
	k.refill = nil
	if r.err != nil {
		return
	}
	k.remaining = res.Remaining
	if !res.Allowed || r.void { // if r is void, a reset has undone the charge
		return
	}
	a := newAllotment(r, res, now)
	k.allotments = append(k.allotments, a)
	if now >= a.end { // the store is too slow for allotments, so the demand has to grow again before the next one
		k.demand = demand{}
	}
	oldest, tooMany := k.allotments[0], len(k.allotments) > 2 // the first two were too small for a take
	l.giveBack(k, func(a *allotment) bool { return l.closed || now >= a.end || tooMany && a == oldest })
	k.setTimer(now)
}

// newAllotment returns the allotment that a call has taken.
func newAllotment(r *refill, res *ratelimit.Result, now time.Duration) *allotment {
	valid := r.op.ValidFor(*res)
	a := &allotment{size: r.op.N, left: r.op.N, taken: *res, takenAt: now}
	a.end = r.sent + valid - valid/1000 // the store's clock may run faster by a thousandth
	a.renewTime = a.end
	if valid >= r.op.Prepaid-time.Microsecond { // the allotment does not end with its bucket or window
		a.renewTime -= r.op.Prepaid / 4
	}
	return a
}

// refund sends a refund once. It does not repeat a failed refund, because the refund may have been made.
func (l *prepaidLayer) refund(op ratelimit.Op) {
	_, err := l.call(op)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && l.closed && l.lostErr == nil {
		l.lostErr = fmt.Errorf("layer: prepaid units stay charged: %w", err)
	}
}
