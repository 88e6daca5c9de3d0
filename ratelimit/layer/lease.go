package layer

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/storage"
)

// LeaseOptions are the layer that takes units of a key in advance, many in one call, and spends them
// without the store. The zero value is usable.
//
// What it takes follows the demand: half of what was asked of the key within the last Life, so
// that it is renewed about twice in a Life, in the background, before it is spent. A key that is
// asked rarely has no lease, and costs what it costs without the layer. What is not spent goes
// back to the store when the lease ends.
//
// The limit is never exceeded, because the units are charged as if they were spent at the
// lease's end (see [ratelimit.Op.ValidFor]), by a clock of this process that runs from
// before the call. It may be missed by what is leased and not spent, at most two leases of
// a key in each process; by what counts up to a Life longer than it would; and for a GCRA
// by what falls of its level in a Life. A process that dies takes its leases with it: their
// units stay charged as if they had been spent. So do those of a GCRA that others have
// charged meanwhile.
//
// Takes of one op are served so, of rules without a Block. All else goes to the store: a
// denial is always the store's. A result of [ratelimit.FromLease] has what the store said
// when the lease was taken, brought up to date by what is known here: Remaining is what the
// store had left, and the rest of the lease. A Refund gives units back to their lease as
// long as that lives. Peeks, counts and adds see the rest of this process's own leases as
// not used, those of others as used. A Reset ends the key's leases here, before it is done;
// other processes spend theirs. Groups of several ops are charged by the store alone, and
// see all leases as used.
//
// An error of the call that takes a lease is that of all who wait for it. A panic in it is
// nobody's; they ask the store by themselves then, on their own goroutines.
//
// A take from a lease costs no allocation and no lock. A caller whose take waits for a
// lease may leave at any time, and is not charged.
type LeaseOptions struct {
	// Life is for how long units are held at most, from 1 ms to [ratelimit.MaxPrepaid]. By
	// rule it is less: a twentieth of its Per, of a GCRA also of the time in which a full
	// burst comes back; and no lease outlives the bucket or the window that it was charged
	// to. Longer lives save more calls of keys that are asked moderately often. Zero means
	// 1 s.
	Life time.Duration
	// Max is the largest number of units in a lease, at least 1. Zero means 1,000,000.
	Max int64
	// Share keeps a process from starving the others: a lease is at most this part of what
	// can pass at once, one in Share of a rule's Burst; also at most a quarter of what the
	// store has left. A rule whose Burst is less than twice Share has no leases. At least
	// 1; zero means 10.
	Share int64
	// MaxKeys is about how many keys, of each rule, are known at a time, at least 1. Takes
	// from others go to the store. A key takes some 300 bytes. Zero means 16,384.
	MaxKeys int
	// MaxCalls is how many calls at once the layer makes to take leases, each on a goroutine
	// of its own, at least 1. Beyond that, takes go to the store. Zero means 64.
	MaxCalls int
	// Timeout bounds the calls that the layer makes on behalf of nobody, or of many: those
	// that take leases and give back the rest. Zero means 1 s.
	Timeout time.Duration
}

func (o LeaseOptions) withDefaults() LeaseOptions {
	if o.Life == 0 {
		o.Life = time.Second
	}
	if o.Max == 0 {
		o.Max = 1_000_000
	}
	if o.Share == 0 {
		o.Share = 10
	}
	if o.MaxKeys == 0 {
		o.MaxKeys = 1 << 14
	}
	if o.MaxCalls == 0 {
		o.MaxCalls = 64
	}
	if o.Timeout == 0 {
		o.Timeout = time.Second
	}
	return o
}

// minLife is what a lease is worth its trouble for.
const minLife = time.Millisecond

func (o LeaseOptions) check() error {
	const of = "LeaseOptions."
	switch {
	case o.Life < minLife || o.Life > ratelimit.MaxPrepaid:
		return option.Errorf("layer", of+"Life", "is %v, want %v to %v", o.Life, minLife, ratelimit.MaxPrepaid)
	case o.Max < 1:
		return option.Errorf("layer", of+"Max", "is %d, want at least 1", o.Max)
	case o.Share < 1:
		return option.Errorf("layer", of+"Share", "is %d, want at least 1", o.Share)
	}
	return cmp.Or(
		option.Count("layer", of+"MaxKeys", o.MaxKeys, 1),
		option.Count("layer", of+"MaxCalls", o.MaxCalls, 1),
		option.Duration("layer", of+"Timeout", o.Timeout, 0),
	)
}

// leaseLayer is what LeaseOptions configures.
type leaseLayer struct {
	inner ratelimit.Store
	one   func(context.Context, ratelimit.Op) (ratelimit.Result, error)
	o     LeaseOptions
	start time.Time
	seed  maphash.Seed

	rules leaseRules
	table leaseTable
	ends  endings
	calls chan struct{} // has a place for each call that may be under way

	stop    chan struct{}
	stopped sync.WaitGroup // the goroutine, and the calls that are under way
}

// newLease returns a layer around inner, which stays the caller's to close. An error names
// the field that is out of range.
func newLease(inner ratelimit.Store, o LeaseOptions) (*leaseLayer, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	l := &leaseLayer{inner: inner, one: storage.DoOne(inner), o: o, start: time.Now(), seed: maphash.MakeSeed()}
	l.calls, l.stop = make(chan struct{}, o.MaxCalls), make(chan struct{})
	l.table.init(o.MaxKeys)
	l.ends.wake = make(chan struct{}, 1)
	l.stopped.Go(l.giveBack)
	return l, nil
}

// now is the time by the process's own clock, which nobody sets.
func (l *leaseLayer) now() time.Duration { return time.Since(l.start) }

// Do runs ops as [ratelimit.Store] says.
func (l *leaseLayer) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	if len(ops) != 1 {
		for i := range ops {
			if ops[i].Kind == ratelimit.Reset {
				defer l.forget(&ops[i])()
			}
		}
		return l.inner.Do(ctx, ops)
	}
	res, err := l.DoOne(ctx, ops[0])
	if err != nil {
		return nil, err
	}
	return []ratelimit.Result{res}, nil
}

// DoOne is Do with a list of one.
func (l *leaseLayer) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	r := l.rules.of(&op.Rule, &l.o)
	switch {
	case op.Kind == ratelimit.Reset:
		defer l.forget(&op)()
		return l.one(ctx, op)
	case r == nil || op.Prepaid != 0:
		return l.one(ctx, op)
	case op.Kind == ratelimit.Take:
		return l.take(ctx, r, &op)
	default:
		return l.other(ctx, r, &op)
	}
}

// Close ends the layer's goroutine and gives back what is leased. It waits for the calls
// that are under way, but not longer than twice the Timeout, so it doesn't hang in a store
// that does. An error says that not all could be given back; what wasn't stays charged.
// From then on the layer only passes on what it is asked. Another Close does nothing.
func (l *leaseLayer) Close() error {
	if !l.ends.close() {
		return nil
	}
	close(l.stop)
	done := make(chan error, 1)
	go func() {
		l.stopped.Wait()
		done <- l.refund(l.ends.all(l.now()))
	}()
	hung := time.NewTimer(2 * l.o.Timeout)
	defer hung.Stop()
	select {
	case err := <-done:
		return err
	case <-hung.C:
		return errors.New("layer: leaseLayer.Close: the store does not answer")
	}
}
