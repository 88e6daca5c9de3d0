package layer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
)

// LeaseOptions configure the layer that takes units of a key in advance, many in one call, and
// spends them without the store. The zero value is usable.
//
// The size of a lease follows demand: it is half of the units that were taken of the key within a
// Lifetime. The next lease is taken in the background, before the current one is spent. A key
// that is used rarely has no lease, and costs as much as without the layer. Units that are not
// spent go back to the store when the lease ends.
//
// The limit is never exceeded, because units are charged as if they were spent at the lease's
// end (see [ratelimit.Op.ValidFor]). Throughput may stay below the limit by the units that are
// leased and not spent, at most two leases of a key in each process; by units that count up to a
// Lifetime longer; and for a GCRA by what comes back in a Lifetime. If a process dies, the
// units of its leases stay charged as if they were spent. So do unspent units of a GCRA if the
// key was charged or refunded meanwhile.
//
// Leases serve single takes by rules without a Block. The store runs all other ops, and only
// the store denies. A result from [ratelimit.FromLease] is the store's result when the lease
// was taken, brought up to date: Remaining is what the store had left plus the rest of the
// lease. Single peeks, counts and adds see the units that this process leases as unused; all
// other leased units are used. A Reset ends the key's leases in this process first; other
// processes spend theirs. A take that waits for a lease returns when its context ends, or with
// the error of the call that takes the lease.
type LeaseOptions struct {
	// Lifetime is the maximum time units are leased for, from 1 ms to [ratelimit.MaxPrepaid].
	// For a rule it is at most a twentieth of its Per, for a GCRA also of the time in which a
	// full burst comes back; and no lease outlives the bucket or window that it was charged
	// to. A longer one saves more calls for keys in moderate demand. Zero means 1 s.
	Lifetime time.Duration
	// Max is the largest number of units in a lease, at least 1. Zero means 1,000,000.
	Max int64
	// Share keeps one process from starving the others: a lease is at most one in Share of a
	// rule's Burst, and at most a quarter of what the store has left. A rule with a Burst
	// below twice Share has no leases. At least 1; zero means 10.
	Share int64
	// MaxKeys is how many keys are tracked at once, counted for each rule, at least 1. Takes of
	// other keys go to the store. A key takes about 400 bytes. Zero means 16,384.
	MaxKeys int
	// Timeout limits the calls that take leases and give units back. Zero means 1 s.
	Timeout time.Duration
}

func (o LeaseOptions) withDefaults() LeaseOptions {
	o.Lifetime = cmp.Or(o.Lifetime, time.Second)
	o.Max = cmp.Or(o.Max, 1_000_000)
	o.Share = cmp.Or(o.Share, 10)
	o.MaxKeys = cmp.Or(o.MaxKeys, 1<<14)
	o.Timeout = cmp.Or(o.Timeout, time.Second)
	return o
}

// minLifetime is the shortest lease that is worth a call.
const minLifetime = time.Millisecond

func (o LeaseOptions) check() error {
	const of = "LeaseOptions."
	switch {
	case o.Lifetime < minLifetime || o.Lifetime > ratelimit.MaxPrepaid:
		return option.Errorf("layer", of+"Lifetime", "is %v, want %v to %v", o.Lifetime, minLifetime, ratelimit.MaxPrepaid)
	case o.Max < 1:
		return option.Errorf("layer", of+"Max", "is %d, want at least 1", o.Max)
	case o.Share < 1:
		return option.Errorf("layer", of+"Share", "is %d, want at least 1", o.Share)
	}
	return cmp.Or(
		option.Count("layer", of+"MaxKeys", o.MaxKeys, 1),
		option.Duration("layer", of+"Timeout", o.Timeout, 0),
	)
}

// leaseLayer is the layer of LeaseOptions. Where both are held, keyState.mu is locked before mu.
type leaseLayer struct {
	inner ratelimit.Store
	o     LeaseOptions
	start time.Time
	rules sync.Map // of *leaseRule, by ratelimit.Rule

	ruleCount atomic.Int64

	mu        sync.Mutex
	keys      int            // tracked, of all rules
	refunds   []ratelimit.Op // of leases that have ended
	refunding bool           // a goroutine sends refunds
	closed    bool
	running   sync.WaitGroup // goroutines; none starts once the layer is closed
}

// newLease returns a layer around inner. It returns an error if an option is out of range.
func newLease(inner ratelimit.Store, o LeaseOptions) (*leaseLayer, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	return &leaseLayer{inner: inner, o: o, start: time.Now()}, nil
}

// sinceStart returns the time since the layer was made, on a monotonic clock.
func (l *leaseLayer) sinceStart() time.Duration { return time.Since(l.start) }

func (l *leaseLayer) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
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

func (l *leaseLayer) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	r := l.ruleFor(op.Rule)
	switch {
	case op.Kind == ratelimit.Reset:
		defer l.beginReset(&op)()
	case r == nil || op.Prepaid != 0:
	case op.Kind == ratelimit.Take:
		return l.take(ctx, r, &op)
	default:
		return l.runOther(ctx, r, &op)
	}
	return l.inner.DoOne(ctx, op)
}

// background returns the context of calls that no single caller makes.
func (l *leaseLayer) background() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), l.o.Timeout,
		fmt.Errorf("%w: no lease within %v", ratelimit.ErrStore, l.o.Timeout))
}

// Close gives back the units of all leases. It waits for calls in flight, but at most twice
// the Timeout. It returns an error if some units could not be given back: these stay charged.
// A closed layer passes all ops to the store. Later calls do nothing.
func (l *leaseLayer) Close() error {
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if closed {
		return nil
	}
	done := make(chan error, 1)
	go func() {
		l.running.Wait()
		for _, r := range l.rules.Range {
			for _, k := range r.(*leaseRule).keys.Range {
				l.endLeases(k.(*keyState))
			}
		}
		done <- l.sendRefunds()
	}()
	timeout := time.NewTimer(2 * l.o.Timeout)
	defer timeout.Stop()
	select {
	case err := <-done:
		return err
	case <-timeout.C:
		return errors.New("layer: Close: the store does not answer; leased units stay charged")
	}
}
