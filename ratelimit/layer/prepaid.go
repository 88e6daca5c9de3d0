package layer

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// PrepaidOptions configure the layer that takes units of a key in advance, an allotment with each call, and spends them
// without the store. The zero value is usable.
//
// An allotment has half of the units that were taken of the key within a Lifetime. The next one is taken in the
// background before the current one is spent. Unspent units go back to the store when the allotment ends. A key that is
// used rarely has no allotment. The limit is never exceeded, because the store charges the units as if they were spent at
// the end of the allotment (see [ratelimit.Op.ValidFor]). But throughput may be below the limit.
//
// Only single takes by rules without a Block, other than Concurrent, spend allotments, and only the store denies. The
// result of such a take is from [ratelimit.FromPrepaid]: Remaining is the number of units that the store had left
// plus the rest of the allotment. Single peeks, counts and adds treat the allotments of this process as unused units.
// A Reset ends the allotments of the key in this process only. A take may wait for an allotment, until its context
// ends or the call fails.
type PrepaidOptions struct {
	// Lifetime is the maximum duration of an allotment, from 1 ms to [ratelimit.MaxPrepaid]. It is at most a twentieth
	// of a rule's Per and, for a GCRA, of the time in which a full burst comes back. An allotment also ends with its
	// bucket or window. A longer Lifetime saves more calls for keys in moderate demand. The zero value means 1 s.
	Lifetime time.Duration
	// Share limits an allotment to a rule's Burst divided by Share, at least 1. A rule with a Burst below twice Share has
	// no allotments. An allotment is also at most a quarter of what the store has left. The zero value means 10.
	Share int64
	// MaxKeys is the maximum number of keys with allotments, counted for each rule. A key takes about 400 bytes. The zero
	// value means 16,384.
	MaxKeys int
	// Timeout limits the calls that take allotments and give units back. The zero value means 1 s.
	Timeout time.Duration
}

// minLifetime is the shortest allotment that is worth a call.
const minLifetime = time.Millisecond

func (o PrepaidOptions) withDefaults() PrepaidOptions {
	o.Lifetime = cmp.Or(o.Lifetime, time.Second)
	o.Share = cmp.Or(o.Share, 10)
	o.MaxKeys = cmp.Or(o.MaxKeys, 1<<14)
	o.Timeout = cmp.Or(o.Timeout, time.Second)
	return o
}

func (o PrepaidOptions) check() error {
	const of = "PrepaidOptions."
	switch {
	case o.Lifetime < minLifetime || o.Lifetime > ratelimit.MaxPrepaid:
		return option.Errorf("layer", of+"Lifetime", "is %v, want %v to %v", o.Lifetime, minLifetime, ratelimit.MaxPrepaid)
	case o.Share < 1:
		return option.Errorf("layer", of+"Share", "is %d, want at least 1", o.Share)
	}
	return cmp.Or(
		option.Count("layer", of+"MaxKeys", o.MaxKeys, 1),
		option.Duration("layer", of+"Timeout", o.Timeout, 0),
	)
}

// terms are the limits of a rule's allotments.
type terms struct {
	lifetime time.Duration
	max      int64 // units in an allotment
	capacity int64 // units that can be charged a lifetime ahead
}

// termsOf returns the terms of a rule, and false if it has no allotments: a Block has to take effect at once, a
// Concurrent counts requests in progress, and other rules have too few units or too short a Per.
func (o *PrepaidOptions) termsOf(r ratelimit.Rule) (terms, bool) {
	t := terms{lifetime: min(o.Lifetime, r.Per()/20), capacity: r.Burst()}
	if r.Algorithm() == "gcra" {
		t.lifetime = min(t.lifetime, r.Expiry()/20)
		t.capacity -= 1 + t.lifetime.Microseconds()*r.Limit()/r.Per().Microseconds()
	}
	t.lifetime = t.lifetime.Truncate(time.Microsecond)
	t.max = min(r.Burst()/o.Share, t.capacity)
	return t, r.Block().After == 0 && !r.Layout().Concurrent && t.lifetime >= minLifetime && t.max >= 2
}

// prepaidLayer is the layer of PrepaidOptions. If both locks are held, keyState.mu is locked before mu.
type prepaidLayer struct {
	inner ratelimit.Store
	o     PrepaidOptions
	start time.Time
	keys  sync.Map // of []*keyState with one element for each rule, by key; written under mu

	mu      sync.Mutex
	tracked int            // number of keyStates
	resets  map[string]int // in flight, by key; no allotment of the key is taken meanwhile
	refunds []ratelimit.Op // that Close sends
	closed  bool
	running sync.WaitGroup // goroutines; none starts after the layer is closed
}

// newPrepaid returns a layer around inner. It returns an error if an option is out of range.
func newPrepaid(inner ratelimit.Store, o PrepaidOptions) (*prepaidLayer, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	return &prepaidLayer{inner: inner, o: o, start: time.Now(), resets: make(map[string]int)}, nil
}

// sinceStart returns the time since the layer was made, on a monotonic clock.
func (l *prepaidLayer) sinceStart() time.Duration { return time.Since(l.start) }

func (l *prepaidLayer) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if len(ops) == 1 {
		res, err := l.DoOne(ctx, ops[0])
		if err != nil {
			return nil, err
		}
		return []ratelimit.Result{res}, nil
	}
	for i := range ops {
		if ops[i].Kind == ratelimit.Reset {
			defer l.beginReset(&ops[i])()
		}
	}
	return l.inner.Do(ctx, ops)
}

func (l *prepaidLayer) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	switch {
	case op.Kind == ratelimit.Reset:
		defer l.beginReset(&op)()
	case op.Prepaid != 0:
	case op.Kind == ratelimit.Take:
		return l.take(ctx, &op)
	default:
		return l.runOther(ctx, &op)
	}
	return l.inner.DoOne(ctx, op)
}

// Close implements [Store.Close].
func (l *prepaidLayer) Close() error {
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if closed {
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- l.giveAllBack() }()
	timeout := time.NewTimer(2 * l.o.Timeout)
	defer timeout.Stop()
	select {
	case err := <-done:
		return err
	case <-timeout.C:
		return errors.New("layer: Close: the store does not answer; prepaid units stay charged")
	}
}
