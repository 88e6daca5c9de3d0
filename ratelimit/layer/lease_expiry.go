package layer

import (
	"fmt"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
)

// expire ends the leases of a key whose time has come, forgets an idle key, and otherwise
// schedules the next call.
func (l *leaseLayer) expire(k *keyState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := l.sinceStart()
	for _, h := range k.leases() {
		if h != nil && now >= h.end {
			l.giveBack(k, h, now)
		}
	}
	if k.idle(now) {
		l.forgetKey(k)
	} else if !k.removed {
		l.setTimer(k, now)
	}
}

// setTimer sets the key's timer to the end of its first lease, or to a lifetime from now. The
// caller holds k.mu.
func (l *leaseLayer) setTimer(k *keyState, now time.Duration) {
	wait := k.rule.lifetime
	for _, h := range k.leases() {
		if h != nil {
			wait = min(wait, h.end-now)
		}
	}
	k.timer.Reset(wait)
}

// giveBack ends a lease and gives its unspent units back to the store, in the background. What
// ends while a call is in flight goes back in the next one. The caller holds k.mu.
func (l *leaseLayer) giveBack(k *keyState, h *heldLease, now time.Duration) {
	// Units of more refunds are not given back, and stay charged; on Close all are.
	const maxRefunds = 1 << 14
	n := k.drop(h, now)
	if n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.refunds) < maxRefunds {
		l.refunds = append(l.refunds, k.refundOp(h, n))
	}
	if !l.refunding && !l.closed {
		l.refunding = true
		l.running.Go(func() { _ = l.sendRefunds() })
	}
}

// sendRefunds gives units back until none are left to give. Each refund is sent once: one whose
// reply was lost may have been made.
func (l *leaseLayer) sendRefunds() (err error) {
	const batch = 128
	for {
		l.mu.Lock()
		ops := l.refunds[:min(batch, len(l.refunds))]
		l.refunds = l.refunds[len(ops):]
		l.refunding = len(ops) > 0
		l.mu.Unlock()
		if len(ops) == 0 {
			return err
		}
		if e := l.refund(ops); e != nil {
			err = fmt.Errorf("layer: unspent units of %d leases stay charged: %w", len(ops), e)
		}
	}
}

func (l *leaseLayer) refund(ops []ratelimit.Op) (err error) {
	ctx, cancel := l.background()
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it panicked: %v", ratelimit.ErrStore, p)
		}
	}()
	_, err = l.inner.Do(ctx, ops)
	return err
}

// forgetKey forgets a key. The caller holds k.mu.
func (l *leaseLayer) forgetKey(k *keyState) {
	if k.removed {
		return
	}
	k.removed = true
	k.rule.keys.Delete(k.key)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys--
}

// removeAll ends all leases and forgets all keys.
func (l *leaseLayer) removeAll() {
	for _, r := range l.rules.all() {
		for _, k := range r.keys.Range {
			l.endLeases(k.(*keyState))
		}
	}
}

func (l *leaseLayer) endLeases(k *keyState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer.Stop()
	for _, h := range k.leases() {
		if h != nil {
			l.giveBack(k, h, l.sinceStart())
		}
	}
	l.forgetKey(k)
}
