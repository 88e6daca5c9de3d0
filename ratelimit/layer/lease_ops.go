package layer

import (
	"context"
	"slices"

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
		l.renew(k)
	}
	return h.result(op.N, left, now), nil
}

// renew takes the next lease while the current one is spent.
func (l *leaseLayer) renew(k *keyState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := l.sinceStart(); k.next.available(now) == 0 {
		l.startRefill(k, 0, now)
	}
}

// takeSlowly takes units where the current lease has too few: from the next one, from one that
// it has to wait for, or from the store. Other callers may use up the leases that it waits for.
func (l *leaseLayer) takeSlowly(ctx context.Context, r *leaseRule, op *ratelimit.Op) (ratelimit.Result, error) {
	if err := check(ctx, []ratelimit.Op{*op}); err != nil {
		return ratelimit.Result{}, err
	}
	k := l.track(r, op.Key)
	if k == nil {
		return l.inner.DoOne(ctx, *op)
	}
	for range 2 {
		res, refill := l.spendOrRefill(k, op.N)
		if res != nil {
			return *res, nil
		}
		if refill == nil {
			break
		}
		select {
		case <-refill.done:
		case <-ctx.Done():
			return ratelimit.Result{}, context.Cause(ctx)
		}
		if refill.err != nil {
			return ratelimit.Result{}, refill.err
		}
	}
	return l.takeFromStore(ctx, k, op)
}

// spendOrRefill spends n leased units, or returns the refill to wait for. It returns neither if the
// caller has to call the store.
func (l *leaseLayer) spendOrRefill(k *keyState, n int64) (*ratelimit.Result, *refillCall) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := l.sinceStart()
	l.switchLease(k, now)
	if res, ok := k.spend(n, now); ok {
		return &res, nil
	}
	l.startRefill(k, n, now)
	return nil, k.refill
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
	out, err := l.inner.Do(ctx, append(refunds, retry))
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
	for _, h := range slices.Backward(k.leases()) { // the newest first, for a GCRA's refunds
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

// runOther runs an op that is neither a take nor a reset. In its result, units that this process
// leases are unused.
func (l *leaseLayer) runOther(ctx context.Context, r *leaseRule, op *ratelimit.Op) (ratelimit.Result, error) {
	res, err := l.inner.DoOne(ctx, *op)
	k := r.find(op.Key)
	if err != nil || k == nil {
		return res, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	leased := k.available(l.sinceStart())
	res.Count = max(0, res.Count-leased)
	if op.Kind == ratelimit.Peek && op.N <= res.Remaining+leased {
		res.Allowed, res.Violated, res.RetryAfter = true, false, 0
	}
	if op.Kind != ratelimit.Count {
		addLeased(&res, leased)
	}
	return res, nil
}

// beginReset ends the leases of what op resets, and prevents new ones until the returned function is
// called: units that were charged before a reset must not be spent after it.
func (l *leaseLayer) beginReset(op *ratelimit.Op) (done func()) {
	var keys []*keyState
	for _, v := range l.rules.Range {
		r := v.(*leaseRule)
		if k := r.find(op.Key); k != nil && r.rule.SharesCounter(op.Rule) {
			l.dropLeases(k)
			keys = append(keys, k)
		}
	}
	return func() {
		for _, k := range keys {
			k.mu.Lock()
			k.resets--
			k.mu.Unlock()
		}
	}
}

// dropLeases ends a key's leases, of which nothing is given back.
func (l *leaseLayer) dropLeases(k *keyState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := l.sinceStart()
	for _, h := range k.leases() {
		k.drop(h, now)
	}
	if k.refill != nil {
		k.refill.void = true
	}
	k.remaining = unknown
	k.resets++
}
