package coord

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"
)

// keepNumber is LeaseRequest.KeepNumber: no clock should be set back by more.
const keepNumber = time.Hour

// LeaseOptions say what leases are like. The zero value is usable. All who compete for the
// same users should have the same.
type LeaseOptions struct {
	// Lifetime is how long a lease lasts without renewal: so long a user whose worker
	// died has none. Default: 30 s; at least 1 ms.
	Lifetime time.Duration
	// MaxLife is how long a lease lasts at most, however often it is renewed. Default:
	// Lifetime, so that it can't be.
	MaxLife time.Duration
	// MinInterval is how long after the beginning of a user's last lease the next one may
	// begin. What was denied doesn't count. Default: 0, at once.
	MinInterval time.Duration
	// Margin is how much earlier than in the store a lease ends here. It makes up for
	// clocks that run at different speeds, and for the time that a worker needs to stop.
	// Default: a twentieth of Lifetime.
	Margin time.Duration
	// Poll is how often who waits asks whether a lease was released in another process
	// before its time. Default: 1 s.
	Poll time.Duration
	// Name says who holds a lease, to those who ask. Default: host name and process id.
	Name string
}

func (o LeaseOptions) withDefaults() LeaseOptions {
	if o.Lifetime == 0 {
		o.Lifetime = 30 * time.Second
	}
	if o.MaxLife == 0 {
		o.MaxLife = o.Lifetime
	}
	if o.Margin == 0 {
		o.Margin = o.Lifetime / 20
	}
	if o.Poll == 0 {
		o.Poll = time.Second
	}
	if o.Name == "" {
		host, _ := os.Hostname() // a name without it will do
		o.Name = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	return o
}

func (o LeaseOptions) check() error {
	if err := checkTime("Lifetime", o.Lifetime); err != nil {
		return err
	}
	if err := checkTime("MaxLife", o.MaxLife); err != nil {
		return err
	}
	if o.MaxLife < o.Lifetime {
		return invalid("MaxLife is %v, want at least Lifetime, %v", o.MaxLife, o.Lifetime)
	}
	if o.MinInterval != 0 {
		if err := checkTime("MinInterval", o.MinInterval); err != nil {
			return err
		}
	}
	if err := checkName("the holder's name", o.Name); err != nil {
		return err
	}
	if o.Margin < 0 || o.Margin >= o.Lifetime {
		return invalid("Margin is %v, want at least 0 and less than Lifetime, %v", o.Margin, o.Lifetime)
	}
	return checkTime("Poll", o.Poll)
}

// request is what a store is told, all but the ID.
func (o LeaseOptions) request() LeaseRequest {
	return LeaseRequest{
		Name: o.Name, Lifetime: o.Lifetime, MaxLife: o.MaxLife, MinInterval: o.MinInterval, KeepNumber: keepNumber,
	}
}

// Leases see to it that there is only one worker for a user, in all processes that share
// the store. A user is any name: of a person, of a file, of a kind of work for either. All
// methods may be called concurrently. Nothing needs closing.
type Leases struct {
	store LeaseStore
	o     LeaseOptions
	lines lines // of those who wait in this process
}

// NewLeases returns the leases in store. An error names the option that is out of range.
func NewLeases(store LeaseStore, o LeaseOptions) (*Leases, error) {
	if store == nil {
		return nil, errors.New("coord: no store")
	}
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Leases{store: store, o: o}, nil
}

// Acquire gets the lease of a user if it can be had now. If not, the error is a
// *DeniedError, which says how long to wait. It doesn't queue: of those who [Leases.Wait],
// it can overtake some.
//
// The lease does not end with ctx, which is only for asking. Who has it releases it. It
// costs one call of the store; after the end of ctx or ErrStore a second one, which Acquire
// doesn't wait for, gives back what may have been granted.
func (l *Leases) Acquire(ctx context.Context, user string) (*Lease, error) {
	if err := checkUser(user); err != nil {
		return nil, err
	}
	r := l.o.request()
	rand.Read(r.ID[:])
	// The store counts from a moment after this one.
	sent := time.Now()
	number, err := l.store.Acquire(ctx, user, r)
	if err != nil {
		return nil, err
	}
	lease := newLease(l, user, r, number, sent.Add(l.o.Lifetime-l.o.Margin))
	if lease.over() {
		go func() { _ = lease.Release() }() // or it ends by itself
		return nil, fmt.Errorf("%w: the answer came when the lease had ended", ErrStore)
	}
	return lease, nil
}

// Holder returns the holder of a user's lease, and whether there is one. That may have
// changed when it is read: it is for people.
func (l *Leases) Holder(ctx context.Context, user string) (h Holder, held bool, err error) {
	if err := checkUser(user); err != nil {
		return Holder{}, false, err
	}
	return l.store.Holder(ctx, user)
}
