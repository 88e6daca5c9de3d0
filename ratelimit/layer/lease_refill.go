package layer

import (
	"context"
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// refill is a call that takes a lease. Its fields are guarded by the holding's mu, and
// don't change once it is over.
type refill struct {
	done  chan struct{}
	claim int64 // units of the take that began it, 0 if there is none, or that has left
	void  bool  // the counter was reset meanwhile

	over    bool
	granted bool             // the claim
	res     ratelimit.Result // of the claim
	err     error
}

// renew takes the next lease before the present one is spent.
func (l *leaseLayer) renew(h *holding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := l.now()
	if h.refill != nil || h.spare.alive(now) > 0 {
		return
	}
	if units := h.want(0, now); units > 0 {
		l.begin(h, units, 0)
	}
}

// begin begins to take units, of which a take claims some. It returns nil if too many calls
// are under way, or the layer is closed. The caller holds h.mu.
func (l *leaseLayer) begin(h *holding, units, claim int64) *refill {
	select {
	case l.calls <- struct{}{}:
	default:
		return nil
	}
	if !l.ends.enter(&l.stopped) {
		<-l.calls
		return nil
	}
	h.refill = &refill{done: make(chan struct{}), claim: claim}
	go l.run(h, h.refill, units)
	return h.refill
}

func (l *leaseLayer) run(h *holding, r *refill, units int64) {
	defer l.stopped.Done()
	defer func() { <-l.calls }()
	t := taking{
		op:   ratelimit.Op{Rule: h.rule.rule, Key: h.key, N: units, Kind: ratelimit.Take, Prepaid: h.rule.life},
		sent: l.now(),
		err:  fmt.Errorf("%w: it ended the goroutine that asked it for a lease", ratelimit.ErrStore),
	}
	defer func() { l.finish(h, r, &t) }()
	t.res, t.err = l.ask(t.op)
}

// taking is a call of the store for a lease, and its answer.
type taking struct {
	op   ratelimit.Op
	sent time.Duration // by the layer's clock
	res  ratelimit.Result
	err  error
}

// ask asks the store on behalf of nobody. A panic is no answer: those who wait then ask for
// themselves, and get their own.
func (l *leaseLayer) ask(op ratelimit.Op) (res ratelimit.Result, err error) {
	ctx, cancel := l.background()
	defer cancel()
	defer func() {
		if recover() != nil {
			res, err = ratelimit.Result{Remaining: notKnown}, nil
		}
	}()
	return l.one(ctx, op)
}

// background is the context of what the layer does by itself.
func (l *leaseLayer) background() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), l.o.Timeout,
		fmt.Errorf("%w: no answer to a lease within %v", ratelimit.ErrStore, l.o.Timeout))
}

// finish hands out what a call has taken.
func (l *leaseLayer) finish(h *holding, r *refill, t *taking) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer close(r.done)
	h.refill = nil
	r.over, r.err = true, t.err
	if t.err != nil {
		return
	}
	h.left = t.res.Remaining
	if !t.res.Allowed {
		return
	}
	now := l.now()
	lease := newLent(h, t, now)
	if r.claim > 0 {
		left := lease.rest.Add(-r.claim)
		r.granted, r.res = true, t.res
		r.res.Receipt.N = r.claim
		addOwn(&r.res, left)
	}
	switch {
	case r.void:
		h.count(lease, lease.close(), now)
	case now >= lease.end:
		// Leases that end before they come are no good; the demand has to grow anew.
		h.demand = demand{}
		l.ends.give(lease, lease.close())
	default:
		l.install(h, lease, now)
	}
}

// newLent makes a lease of what was taken.
func newLent(h *holding, t *taking, now time.Duration) *lent {
	good := t.op.ValidFor(t.res)
	lease := &lent{of: h, size: t.op.N, low: t.op.N / 2, got: t.res, at: now, index: notListed}
	lease.end = t.sent + good - good/1000 // the store's clock may be that much faster
	lease.early = lease.end
	if good >= t.op.Prepaid-time.Microsecond { // a bucket or window that ends is no reason
		lease.early -= h.rule.life / 4
	}
	lease.rest.Store(lease.size)
	return lease
}

// install makes a lease the one that is spent, or the next one. The caller holds h.mu.
func (l *leaseLayer) install(h *holding, lease *lent, now time.Duration) {
	if spent := h.advance(now); spent != nil {
		l.ends.remove(spent)
	}
	switch old := h.spare; {
	case h.cur.Load() == nil:
		h.cur.Store(lease)
	case old != nil: // both were not enough for a take
		l.ends.give(old, h.drop(old, now))
		fallthrough
	default:
		h.spare = lease
	}
	l.ends.add(lease)
}
