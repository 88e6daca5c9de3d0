package layer

import (
	"context"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// take takes from a lease, if there is one with so many units.
func (l *leaseLayer) take(ctx context.Context, r *leaseRule, op *ratelimit.Op) (ratelimit.Result, error) {
	hash := r.hash(l.seed, op.Key)
	h := l.table.find(hash, r, op.Key)
	if h == nil || op.N <= 0 || ctx.Err() != nil {
		return l.takeSlowly(ctx, r, op, hash)
	}
	lease := h.cur.Load()
	if lease == nil {
		return l.takeSlowly(ctx, r, op, hash)
	}
	now := l.now()
	left, ok := lease.spend(op.N, now)
	if !ok {
		return l.takeSlowly(ctx, r, op, hash)
	}
	if (left <= lease.low || now >= lease.early) && !lease.asked.Load() && lease.asked.CompareAndSwap(false, true) {
		l.renew(h)
	}
	return lease.result(op.N, left, now), nil
}

// maxWaits is for how many leases that others use up a take waits before it goes to the
// store by itself.
const maxWaits = 2

// takeSlowly takes where the lease of the key is not enough.
func (l *leaseLayer) takeSlowly(ctx context.Context, r *leaseRule, op *ratelimit.Op, hash uint64) (ratelimit.Result, error) {
	if ctx.Err() != nil {
		return ratelimit.Result{}, context.Cause(ctx)
	}
	if err := storage.Validate([]ratelimit.Op{*op}); err != nil {
		return ratelimit.Result{}, err
	}
	for waits := 0; ; waits++ {
		h := l.table.hold(hash, r, op.Key, l.now())
		if h == nil {
			return l.one(ctx, *op)
		}
		e := l.enter(h, op.N, waits == maxWaits)
		switch {
		case e.retired:
			waits--
			continue
		case e.served:
			return e.res, nil
		case e.refill == nil:
			return l.plain(ctx, h, op)
		}
		select {
		case <-e.refill.done:
		case <-ctx.Done():
		}
		switch h.leave(&e, op.N); {
		case e.served:
			return e.res, nil
		case ctx.Err() != nil:
			return ratelimit.Result{}, context.Cause(ctx)
		case e.refill.err != nil:
			return ratelimit.Result{}, e.refill.err
		case e.claims:
			return l.plain(ctx, h, op)
		}
	}
}

// entry is what a take finds at a key. If nothing is set, it has to go to the store itself.
type entry struct {
	retired bool             // it has to look for the key again
	served  bool             // it has units
	res     ratelimit.Result // with them
	refill  *refill          // it has to wait for that,
	claims  bool             // which brings its own units, too
}

// enter serves a take of n from what is leased, or has a lease taken, or waits for one,
// unless it waited before for long enough.
func (l *leaseLayer) enter(h *holding, n int64, waited bool) (e entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.retired {
		return entry{retired: true}
	}
	now := l.now()
	if spent := h.advance(now); spent != nil {
		l.ends.remove(spent)
	}
	e.res, e.served = h.spend(n, now)
	switch {
	case e.served || waited:
	case h.refill != nil:
		h.waiting += n
		e.refill = h.refill
	default:
		if units := h.want(n, now); units > n {
			e.refill = l.begin(h, units, n)
			e.claims = e.refill != nil
		}
	}
	return e
}

// leave ends the wait of a take of n. It is served if the refill has brought its own units.
func (h *holding) leave(e *entry, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !e.claims:
		h.waiting -= n
	case !e.refill.over:
		e.refill.claim = 0
	default:
		e.res, e.served = e.refill.res, e.refill.granted
	}
}

// plain takes from the store, without a lease.
func (l *leaseLayer) plain(ctx context.Context, h *holding, op *ratelimit.Op) (ratelimit.Result, error) {
	res, err := l.one(ctx, *op)
	if err != nil {
		return res, err
	}
	back := l.hear(h, op, &res)
	if len(back) == 0 {
		return res, nil
	}
	again := *op
	again.NewGroup = true
	out, err := l.inner.Do(ctx, append(back, again))
	if err != nil {
		return ratelimit.Result{}, err
	}
	return out[len(out)-1], nil
}

// hear learns from the store's answer to a take. If that was denied only because of what is
// leased here, it ends those leases and returns what gives them back.
func (l *leaseLayer) hear(h *holding, op *ratelimit.Op, res *ratelimit.Result) (back []ratelimit.Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := l.now()
	h.left = res.Remaining
	if res.Allowed {
		h.demand.note(op.N, now, h.rule.life)
	}
	own := h.own(now)
	if res.Allowed || own == 0 || op.N > res.Remaining+own {
		addOwn(res, own)
		return nil
	}
	for _, lease := range [...]*lent{h.spare, h.cur.Load()} { // the newest first, for GCRAs
		if lease == nil {
			continue
		}
		if rest := h.drop(lease, now); rest > 0 {
			back = append(back, lease.back(rest))
		}
		l.ends.remove(lease)
	}
	return back
}

// addOwn makes a store's result one that knows of units which it has lent.
func addOwn(res *ratelimit.Result, own int64) {
	res.Remaining += own
	if res.Allowed && res.Remaining > 0 {
		res.RetryAfter = 0
	}
}
