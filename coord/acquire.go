package coord

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lazyreq/lazyreq/internal/option"
)

// LeaseOptions configures [Leases]. The zero value means the defaults. All processes that compete for the same users
// should have the same options.
type LeaseOptions struct {
	// Lifetime is how long a lease lasts without renewal. If a worker dies, no other worker can begin for its user
	// until then. Default: 30 s; at least 1 ms.
	Lifetime time.Duration
	// MaxLifetime is how long a lease lasts with all renewals. Default: Lifetime, which means no renewals.
	MaxLifetime time.Duration
	// MinInterval is the minimum time between the beginnings of two leases of a user. Denied requests do not count.
	// Default: 0.
	MinInterval time.Duration
	// Margin is how much earlier a lease ends in the process than in the store. It allows for clocks that run at
	// different speeds, and for the time that a worker needs to stop. Default: a twentieth of Lifetime.
	Margin time.Duration
	// Poll is the interval at which a waiter asks the store whether another process has released the lease early.
	// Default: 1 s.
	Poll time.Duration
	// Name is the name of the holder in a [DeniedError]. Default: host name and process id.
	Name string
}

func (o LeaseOptions) withDefaults() LeaseOptions {
	o.Lifetime = cmp.Or(o.Lifetime, 30*time.Second)
	o.MaxLifetime = cmp.Or(o.MaxLifetime, o.Lifetime)
	o.Margin = cmp.Or(o.Margin, o.Lifetime/20)
	o.Poll = cmp.Or(o.Poll, time.Second)
	if o.Name == "" {
		host, _ := os.Hostname() // if it fails, the name begins with a colon
		o.Name = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	return o
}

func (o LeaseOptions) check() error {
	for _, d := range []struct {
		field      string
		value, min time.Duration
	}{
		{"Lifetime", o.Lifetime, MinTime},
		{"MaxLifetime", o.MaxLifetime, max(MinTime, o.Lifetime)},
		{"MinInterval", cmp.Or(o.MinInterval, MinTime), MinTime},
		{"Margin", o.Margin, 0},
		{"Poll", o.Poll, MinTime},
	} {
		if err := option.Duration("coord", "LeaseOptions."+d.field, d.value, d.min); err != nil {
			return err
		}
	}
	if o.Margin >= o.Lifetime {
		return option.Errorf("coord", "LeaseOptions.Margin", "is %v, want less than Lifetime, %v", o.Margin, o.Lifetime)
	}
	if len(o.Name) > MaxName {
		return option.Errorf("coord", "LeaseOptions.Name", "has %d bytes, want at most %d", len(o.Name), MaxName)
	}
	return nil
}

// Leases allow one worker at a time for each user, in all processes that share the store. A user is any name, such as
// that of a person, a file or a kind of work. All methods are safe for concurrent use. Leases need no closing.
type Leases struct {
	store   LeaseStore
	o       LeaseOptions
	waiters waitLists
}

// NewLeases returns the leases in store. It returns an error if store is nil or an option is out of range.
func NewLeases(store LeaseStore, o LeaseOptions) (*Leases, error) {
	if option.IsNil(store) {
		return nil, errors.New("coord: NewLeases: store is nil")
	}
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Leases{store: store, o: o}, nil
}

// Acquire returns the lease of a user if it is free. Otherwise it returns a *[DeniedError]. Acquire does not queue,
// so it can get the lease before callers of [Leases.Wait].
//
// The caller must release the lease. The end of ctx does not release it. Acquire makes one store call. If ctx ends or
// the store fails during the call, the store may have granted the lease. A second call in the background then
// releases it.
func (l *Leases) Acquire(ctx context.Context, user string) (*Lease, error) {
	if err := checkUser(user); err != nil {
		return nil, err
	}
	r := LeaseRequest{Name: l.o.Name, Lifetime: l.o.Lifetime, MinInterval: l.o.MinInterval}
	rand.Read(r.ID[:])
	sent := time.Now() // the store counts the lifetime from a later time
	number, err := l.store.Acquire(ctx, user, r)
	if err != nil {
		return nil, err
	}
	lease := newLease(l, user, r, number, sent)
	if lease.hasEnded() {
		go func() { _ = lease.Release() }() // if that fails, the lease expires
		return nil, fmt.Errorf("%w: the reply came after the end of the lease", ErrStore)
	}
	return lease, nil
}

// Run acquires the lease of a user, as [Leases.Acquire] does, and calls [Lease.Run].
func (l *Leases) Run(ctx context.Context, user string, fn func(ctx context.Context) error) error {
	lease, err := l.Acquire(ctx, user)
	if err != nil {
		return err
	}
	return lease.Run(ctx, fn)
}

func checkUser(user string) error {
	if user == "" {
		return invalidArgument("the user's name is empty")
	}
	return checkName("the user's name", user)
}
