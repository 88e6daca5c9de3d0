package layer

import (
	"context"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// runOther runs an op that is neither a take nor a reset.
func (l *leaseLayer) runOther(ctx context.Context, r *leaseRule, op *ratelimit.Op) (ratelimit.Result, error) {
	k := r.find(op.Key)
	if k == nil || ctx.Err() != nil {
		return l.inner.DoOne(ctx, *op)
	}
	if op.Kind == ratelimit.Refund {
		if res, ok := l.refundToLease(k, op); ok {
			return res, nil
		}
	}
	res, err := l.inner.DoOne(ctx, *op)
	if err == nil {
		l.includeLeased(k, op, &res)
	}
	return res, err
}

// refundToLease returns units to the lease they came from, if that has not ended.
func (l *leaseLayer) refundToLease(k *keyState, op *ratelimit.Op) (res ratelimit.Result, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := l.sinceStart()
	for _, h := range k.leases() {
		if h == nil {
			continue
		}
		receipt := h.taken.Receipt
		receipt.N = op.Receipt.N
		if receipt == op.Receipt && h.unspend(receipt.N, now) {
			res = h.result(0, h.available(now), now)
			res.Receipt = ratelimit.Receipt{}
			return res, true
		}
	}
	return res, false
}

// includeLeased changes the store's result so that units leased by this process are unused.
func (l *leaseLayer) includeLeased(k *keyState, op *ratelimit.Op, res *ratelimit.Result) {
	k.mu.Lock()
	defer k.mu.Unlock()
	leased := k.available(l.sinceStart())
	switch op.Kind {
	case ratelimit.Count:
		res.Count = max(0, res.Count-leased)
		return
	case ratelimit.Add:
		res.Count = max(0, res.Count-leased)
	case ratelimit.Peek:
		if op.N <= res.Remaining+leased {
			res.Allowed, res.Violated, res.RetryAfter = true, false, 0
		}
	}
	addLeased(res, leased)
}

// beginReset ends the leases of what op resets, and prevents new ones until the returned function is
// called: units that were charged before a reset must not be spent after it.
func (l *leaseLayer) beginReset(op *ratelimit.Op) (done func()) {
	var keys []*keyState
	for _, r := range l.rules.all() {
		if !r.rule.SharesCounter(op.Rule) {
			continue
		}
		if k := r.find(op.Key); k != nil {
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
		if h != nil {
			k.drop(h, now)
		}
	}
	if k.refill != nil {
		k.refill.void = true
	}
	k.remaining = unknown
	k.resets++
}
