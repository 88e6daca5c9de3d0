package layer

import (
	"context"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// other does what is neither a take nor a reset.
func (l *leaseLayer) other(ctx context.Context, r *leaseRule, op *ratelimit.Op) (ratelimit.Result, error) {
	h := l.table.find(r.hash(l.seed, op.Key), r, op.Key)
	if h == nil || ctx.Err() != nil {
		return l.one(ctx, *op)
	}
	if op.Kind == ratelimit.Refund {
		if res, ok := l.refundLocally(h, op); ok {
			return res, nil
		}
	}
	res, err := l.one(ctx, *op)
	if err == nil {
		l.know(h, op, &res)
	}
	return res, err
}

// refundLocally takes back units of a lease that lives.
func (l *leaseLayer) refundLocally(h *holding, op *ratelimit.Op) (res ratelimit.Result, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := l.now()
	for _, lease := range [...]*lent{h.cur.Load(), h.spare} {
		if lease == nil {
			continue
		}
		of := lease.got.Receipt
		of.N = op.Receipt.N
		if of == op.Receipt && lease.restore(op.Receipt.N, now) {
			res = lease.result(0, lease.alive(now), now)
			res.Receipt = ratelimit.Receipt{}
			return res, true
		}
	}
	return res, false
}

// know adds to what the store says of a key what it has lent to this process.
func (l *leaseLayer) know(h *holding, op *ratelimit.Op, res *ratelimit.Result) {
	h.mu.Lock()
	defer h.mu.Unlock()
	own := h.own(l.now())
	switch op.Kind {
	case ratelimit.Count:
		res.Count = max(0, res.Count-own)
		return
	case ratelimit.Add:
		res.Count = max(0, res.Count-own)
	case ratelimit.Peek:
		if op.N <= res.Remaining+own {
			res.Allowed, res.Violated, res.RetryAfter = true, false, 0
		}
	}
	addOwn(res, own)
}

// forget ends the leases of what op resets, and has none until the function that it returns
// is called: what was charged before a reset must not be spent after it.
func (l *leaseLayer) forget(op *ratelimit.Op) (done func()) {
	var held []*holding
	for _, r := range l.rules.all() {
		if !r.rule.SharesCounter(op.Rule) {
			continue
		}
		if h := l.table.find(r.hash(l.seed, op.Key), r, op.Key); h != nil {
			l.reset(h)
			held = append(held, h)
		}
	}
	return func() {
		for _, h := range held {
			h.mu.Lock()
			h.resets--
			h.mu.Unlock()
		}
	}
}

func (l *leaseLayer) reset(h *holding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := l.now()
	for _, lease := range [...]*lent{h.cur.Load(), h.spare} {
		if lease != nil {
			h.drop(lease, now)
			l.ends.remove(lease)
		}
	}
	if h.refill != nil {
		h.refill.void = true
	}
	h.left = notKnown
	h.resets++
}
