package layer

import (
	"context"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// take spends units of the key's lease, if there is one with enough of them.
func (l *leaseLayer) take(ctx context.Context, r *leaseRule, op *ratelimit.Op) (ratelimit.Result, error) {
	k := r.find(op.Key)
	if k == nil || op.N <= 0 || ctx.Err() != nil {
		return l.takeSlowly(ctx, r, op)
	}
	h := k.current.Load()
	if h == nil {
		return l.takeSlowly(ctx, r, op)
	}
	now := l.sinceStart()
	left, ok := h.spend(op.N, now)
	if !ok {
		return l.takeSlowly(ctx, r, op)
	}
	if (left <= h.renewAt || now >= h.renewTime) && !h.renewing.Load() && h.renewing.CompareAndSwap(false, true) {
		l.startRenewal(k)
	}
	return h.result(op.N, left, now), nil
}

// maxWaits is how many leases a take waits for that other callers use up, before it goes to
// the store by itself.
const maxWaits = 2

// takeSlowly takes units where the current lease has too few: from the next one, from one that
// it has to wait for, or from the store.
func (l *leaseLayer) takeSlowly(ctx context.Context, r *leaseRule, op *ratelimit.Op) (ratelimit.Result, error) {
	if err := check(ctx, []ratelimit.Op{*op}); err != nil {
		return ratelimit.Result{}, err
	}
	k := l.track(r, op.Key)
	if k == nil {
		return l.inner.DoOne(ctx, *op)
	}
	for waits := 0; ; waits++ {
		res, refill := l.spendOrWait(k, op.N, waits < maxWaits)
		switch {
		case res != nil:
			return *res, nil
		case refill == nil:
			return l.takeFromStore(ctx, k, op)
		}
		select {
		case <-refill.done:
		case <-ctx.Done():
		}
		k.stopWaiting(op.N)
		switch {
		case ctx.Err() != nil:
			return ratelimit.Result{}, context.Cause(ctx)
		case refill.err != nil:
			return ratelimit.Result{}, refill.err
		case !refill.granted:
			return l.takeFromStore(ctx, k, op)
		}
	}
}

// spendOrWait spends n leased units, or, if the caller may wait, returns the refill to wait for
// before a call of stopWaiting. It returns neither if the caller has to call the store.
func (l *leaseLayer) spendOrWait(k *keyState, n int64, wait bool) (*ratelimit.Result, *refillCall) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := l.sinceStart()
	l.switchLease(k, now)
	if res, ok := k.spend(n, now); ok {
		return &res, nil
	}
	if !wait {
		return nil, nil
	}
	refill := k.refill
	if units := k.unitsToTake(n, now); refill == nil && units > n {
		refill = l.startRefill(k, units)
	}
	if refill != nil {
		k.waiting += n
	}
	return nil, refill
}

func (k *keyState) stopWaiting(n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting -= n
}

// takeFromStore takes units without a lease.
func (l *leaseLayer) takeFromStore(ctx context.Context, k *keyState, op *ratelimit.Op) (ratelimit.Result, error) {
	res, err := l.inner.DoOne(ctx, *op)
	if err != nil {
		return res, err
	}
	refunds := l.observeTake(k, op, &res)
	if len(refunds) == 0 {
		return res, nil
	}
	retry := *op
	retry.NewGroup = true
	out, err := doAll(ctx, l.inner, append(refunds, retry))
	if err != nil {
		return ratelimit.Result{}, err
	}
	return out[len(out)-1], nil
}

// observeTake keeps what the store answered to a take. If only the units that this process leases
// made it a denial, observe ends these leases and returns the ops that give the units back.
func (l *leaseLayer) observeTake(k *keyState, op *ratelimit.Op, res *ratelimit.Result) (refunds []ratelimit.Op) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := l.sinceStart()
	k.remaining = res.Remaining
	if res.Allowed {
		k.demand.add(op.N, now, k.rule.lifetime)
	}
	leased := k.available(now)
	if res.Allowed || leased == 0 || op.N > res.Remaining+leased {
		addLeased(res, leased)
		return nil
	}
	leases := k.leases()
	for _, h := range [...]*heldLease{leases[1], leases[0]} { // the newest first, for a GCRA's refunds
		if h == nil {
			continue
		}
		if left := k.drop(h, now); left > 0 {
			refunds = append(refunds, k.refundOp(h, left))
		}
	}
	return refunds
}

// addLeased makes the store's result include units that this process leases.
func addLeased(res *ratelimit.Result, leased int64) {
	res.Remaining += leased
	if res.Allowed && res.Remaining > 0 {
		res.RetryAfter = 0
	}
}
