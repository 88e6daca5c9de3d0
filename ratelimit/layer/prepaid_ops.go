package layer

import (
	"context"
	"slices"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// take spends prepaid units, or takes units from the store. It waits for two refills at most, because other callers may
// spend the allotments.
func (l *prepaidLayer) take(ctx context.Context, op *ratelimit.Op) (res ratelimit.Result, err error) {
	if err := check(ctx, []ratelimit.Op{*op}); err != nil {
		return res, err
	}
	for range 2 {
		res, refill := l.spendOrRefill(op)
		if res.Allowed {
			return res, nil
		}
		if refill == nil {
			break
		}
		select {
		case <-refill.done:
		case <-ctx.Done():
			return res, context.Cause(ctx)
		}
		if refill.err != nil {
			return res, refill.err
		}
	}
	return l.takeFromStore(ctx, op)
}

// spendOrRefill spends prepaid units, or returns the refill to wait for. It returns neither if the caller has to call the
// store.
func (l *prepaidLayer) spendOrRefill(op *ratelimit.Op) (res ratelimit.Result, wait *refill) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	k := l.track(op)
	if k == nil {
		return res, nil
	}
	l.giveBack(k, func(a *allotment) bool { return a.left == 0 || now >= a.end })
	a := k.spend(op.N, now)
	if a == nil {
		l.startRefill(k, counterOf(op), op.N, now)
		return res, k.refill
	}
	if !a.renewing && len(k.allotments) == 1 && (a.left <= a.size/2 || now >= a.renewTime) {
		a.renewing = true
		l.startRefill(k, counterOf(op), 0, now)
	}
	return a.result(op.N, now), nil
}

// takeFromStore takes units without an allotment.
func (l *prepaidLayer) takeFromStore(ctx context.Context, op *ratelimit.Op) (ratelimit.Result, error) {
	res, err := l.inner.DoOne(ctx, *op)
	if err != nil {
		return res, err
	}
	refunds := l.observeTake(op, &res)
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

// observeTake records the store's result of a take. If the store denied the take only because of the prepaid units of
// this process, observeTake ends the allotments of these units and returns the ops that give them back.
func (l *prepaidLayer) observeTake(op *ratelimit.Op, res *ratelimit.Result) (refunds []ratelimit.Op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	k := l.find(op)
	if k == nil {
		return nil
	}
	k.remaining = res.Remaining
	if res.Allowed {
		k.demand.add(op.N, now, k.lifetime)
	}
	prepaid := k.available(now)
	if res.Allowed || prepaid == 0 || op.N > res.Remaining+prepaid {
		addUnits(res, prepaid)
		return nil
	}
	for _, a := range slices.Backward(k.allotments) { // the newest first, because a GCRA refunds only the last charge
		if a.left > 0 {
			refunds = append(refunds, k.refundOp(a))
		}
	}
	k.allotments = nil
	return refunds
}

// addUnits adds the prepaid units of this process to the store's result.
func addUnits(res *ratelimit.Result, prepaid int64) {
	res.Remaining += prepaid
	if res.Allowed && res.Remaining > 0 {
		res.RetryAfter = 0
	}
}

// addPrepaid changes the store's result of an op other than a take, as if the prepaid units of this process were unused.
func (l *prepaidLayer) addPrepaid(op *ratelimit.Op, res *ratelimit.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.find(op)
	if k == nil {
		return
	}
	prepaid := k.available(l.now())
	res.Count = max(0, res.Count-prepaid)
	if op.Kind == ratelimit.Peek && op.N <= res.Remaining+prepaid {
		res.Allowed, res.Violated, res.RetryAfter = true, false, 0
	}
	if op.Kind != ratelimit.Count {
		addUnits(res, prepaid)
	}
}

// beginReset ends the allotments of the counter that op resets. It prevents new allotments until the returned
// function is called. Units that were charged before a reset must be neither spent nor given back after it.
func (l *prepaidLayer) beginReset(op *ratelimit.Op) (done func()) {
	c := counterOf(op)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resets[c]++
	if k := l.keys[c]; k != nil {
		k.allotments, k.remaining = nil, unknown
		if k.refill != nil {
			k.refill.void = true
		}
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.resets[c]--; l.resets[c] == 0 {
			delete(l.resets, c)
		}
	}
}
