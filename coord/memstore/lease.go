package memstore

import (
	"context"
	"time"

	"github.com/lazyreq/lazyreq/coord"
)

// lease is the last lease of a user. It is guarded by Store.mu.
type lease struct {
	record
	id           [16]byte // the ID of the request
	name         string   // the holder's name
	number       int64
	since, until time.Time // the beginning and the end; a release is the end
}

func (l *lease) heldAt(now time.Time) bool { return l != nil && now.Before(l.until) }

// Acquire implements [coord.LeaseStore].
func (m *Store) Acquire(ctx context.Context, user string, r coord.LeaseRequest) (number int64, err error) {
	now, err := m.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	l := m.leases[user]
	if l != nil {
		err = l.denial(now, r.MinInterval)
	} else {
		l, err = m.newLeaseLocked(user, r.Name, now)
	}
	if err != nil {
		return 0, err
	}
	m.growLocked(&l.record, len(r.Name)-len(l.name))
	l.id, l.name, l.number = r.ID, r.Name, max(l.number+1, now.UnixMicro())
	l.since, l.until = now, now.Add(r.Lifetime)
	m.keepLocked(l, r)
	return l.number, nil
}

func (m *Store) newLeaseLocked(user, name string, now time.Time) (*lease, error) {
	l := &lease{name: name, number: m.minNumber}
	l.record = record{expires: now, remove: func() {
		m.minNumber = max(m.minNumber, l.number)
		delete(m.leases, user)
	}}
	if err := m.addLocked(&l.record, len(user)+len(name)); err != nil {
		return nil, err
	}
	m.leases[user] = l
	return l, nil
}

// denial returns a *DeniedError if the next lease cannot begin now, and otherwise nil.
func (l *lease) denial(now time.Time, interval time.Duration) error {
	since := max(0, now.Sub(l.since)) // the clock may have gone back
	soonest := max(0, interval-since)
	if l.heldAt(now) {
		return &coord.DeniedError{Reason: coord.ErrHeld, RetryAfter: max(soonest, l.until.Sub(now)), Soonest: soonest, Holder: l.name}
	}
	if soonest > 0 {
		return &coord.DeniedError{Reason: coord.ErrTooSoon, RetryAfter: soonest, Soonest: soonest}
	}
	return nil
}

// keepLocked sets how long the store remembers the user: until MinInterval and KeepNumber have passed.
func (m *Store) keepLocked(l *lease, r coord.LeaseRequest) {
	at, next := l.until.Add(coord.KeepNumber), l.since.Add(r.MinInterval)
	if next.After(at) {
		at = next
	}
	m.expireLocked(&l.record, at)
}

// lockHeld locks m.mu and returns the lease that r.ID holds. If it returns an error, m.mu is not locked.
func (m *Store) lockHeld(ctx context.Context, user string, r coord.LeaseRequest) (l *lease, now time.Time, err error) {
	if now, err = m.lock(ctx); err != nil {
		return nil, now, err
	}
	if l = m.leases[user]; !l.heldAt(now) || l.id != r.ID {
		m.mu.Unlock()
		return nil, now, coord.ErrLost
	}
	return l, now, nil
}

// Renew implements [coord.LeaseStore].
func (m *Store) Renew(ctx context.Context, user string, r coord.LeaseRequest) error {
	l, now, err := m.lockHeld(ctx, user, r)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	if until := now.Add(r.Lifetime); until.After(l.until) {
		l.until = until
		m.keepLocked(l, r)
	}
	return nil
}

// Release implements [coord.LeaseStore].
func (m *Store) Release(ctx context.Context, user string, r coord.LeaseRequest) error {
	l, now, err := m.lockHeld(ctx, user, r)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	l.until = now
	m.keepLocked(l, r)
	return nil
}
