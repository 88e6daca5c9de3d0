package layer

import (
	"context"
	"slices"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// take spends units of the current allotment if it has enough.
func (l *prepaidLayer) take(ctx context.Context, op *ratelimit.Op) (ratelimit.Result, error) {
	k := l.find(op.Rule, op.Key)
	if k == nil || op.N <= 0 || ctx.Err() != nil {
		return l.takeSlowly(ctx, op)
	}
	a := k.current.Load()
	if a == nil {
		return l.takeSlowly(ctx, op)
	}
	now := l.sinceStart()
	left, ok := a.spend(op.N, now)
	if !ok {
		return l.takeSlowly(ctx, op)
	}
	if (left <= a.renewAt || now >= a.renewTime) && !a.renewing.Load() && a.renewing.CompareAndSwap(false, true) {
		l.renew(k)
	}
	return a.result(op.N, left, now), nil
}

// renew takes the next allotment while the current one is spent.
func (l *prepaidLayer) renew(k *keyState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := l.sinceStart(); k.next.available(now) == 0 {
		l.startRefill(k, 0, now)
	}
}

// takeSlowly takes units if the current allotment has too few: from the next allotment, from one that it waits for, or
// from the store. It waits twice at most, because other callers may spend the allotments.
func (l *prepaidLayer) takeSlowly(ctx context.Context, op *ratelimit.Op) (ratelimit.Result, error) {
	if err := check(ctx, []ratelimit.Op{*op}); err != nil {
		return ratelimit.Result{}, err
	}
	k := l.track(op.Rule, op.Key)
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

// spendOrRefill spends n prepaid units, or returns the refill to wait for. It returns neither if the caller has to call
// the store.
func (l *prepaidLayer) spendOrRefill(k *keyState, n int64) (*ratelimit.Result, *refill) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := l.sinceStart()
	l.advance(k, now)
	if res, ok := k.spend(n, now); ok {
		return &res, nil
	}
	l.startRefill(k, n, now)
	return nil, k.refill
}

// takeFromStore takes units without an allotment.
func (l *prepaidLayer) takeFromStore(ctx context.Context, k *keyState, op *ratelimit.Op) (ratelimit.Result, error) {
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

// observeTake records the store's result of a take. If the take was denied only because of the prepaid units of this
// process, it ends their allotments and returns the ops that give the units back.
func (l *prepaidLayer) observeTake(k *keyState, op *ratelimit.Op, res *ratelimit.Result) (refunds []ratelimit.Op) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := l.sinceStart()
	k.remaining = res.Remaining
	if res.Allowed {
		k.demand.add(op.N, now, k.lifetime)
	}
	prepaid := k.available(now)
	if res.Allowed || prepaid == 0 || op.N > res.Remaining+prepaid {
		addPrepaid(res, prepaid)
		return nil
	}
	for _, a := range slices.Backward(k.allotments()) { // a GCRA refunds only the last charge
		if left := k.drop(a, now); left > 0 {
			refunds = append(refunds, k.refundOp(a, left))
		}
	}
	return refunds
}

// addPrepaid adds the prepaid units of this process to the store's result.
func addPrepaid(res *ratelimit.Result, prepaid int64) {
	res.Remaining += prepaid
	if res.Allowed && res.Remaining > 0 {
		res.RetryAfter = 0
	}
}

// runOther runs an op that is neither a take nor a reset. Its result treats the prepaid units of this process as unused.
func (l *prepaidLayer) runOther(ctx context.Context, op *ratelimit.Op) (ratelimit.Result, error) {
	res, err := l.inner.DoOne(ctx, *op)
	k := l.find(op.Rule, op.Key)
	if err != nil || k == nil {
		return res, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	prepaid := k.available(l.sinceStart())
	res.Count = max(0, res.Count-prepaid)
	if op.Kind == ratelimit.Peek && op.N <= res.Remaining+prepaid {
		res.Allowed, res.Violated, res.RetryAfter = true, false, 0
	}
	if op.Kind != ratelimit.Count {
		addPrepaid(&res, prepaid)
	}
	return res, nil
}

// beginReset ends the allotments of the counter that op resets, and prevents new ones of its key until the returned
// function is called: units that were charged before a reset must not be spent after it.
func (l *prepaidLayer) beginReset(op *ratelimit.Op) (done func()) {
	key := op.Key // the closure must not keep op, which would then be allocated for each take
	l.addResets(key, 1)
	for _, k := range l.statesOf(key) {
		if k.rule.Layout().ID == op.Rule.Layout().ID {
			l.dropAllotments(k)
		}
	}
	return func() { l.addResets(key, -1) }
}

// addResets adds n to the number of resets of a key in flight.
func (l *prepaidLayer) addResets(key string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resets[key] += n
	if l.resets[key] == 0 {
		delete(l.resets, key)
	}
}

// dropAllotments ends the allotments of a key without giving units back.
func (l *prepaidLayer) dropAllotments(k *keyState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := l.sinceStart()
	for _, a := range k.allotments() {
		k.drop(a, now)
	}
	if k.refill != nil {
		k.refill.void = true
	}
	k.remaining = unknown
}
