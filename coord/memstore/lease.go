package memstore

import (
	"context"
	"time"

	"github.com/lazyreq/lazyreq/coord"
)

// lease is what is known of a user, guarded by Store.mu.
type lease struct {
	coord.Holder // the last one; its Number is the last, too
	id           [16]byte
	held         bool      // was not released
	latest       time.Time // when it ends whatever is renewed
	end          ending
}

// heldAt reports whether the lease has a holder.
func (e *lease) heldAt(now time.Time) bool {
	return e != nil && e.held && now.Before(e.Until)
}

// Acquire implements [coord.LeaseStore].
func (m *Store) Acquire(ctx context.Context, user string, r coord.LeaseRequest) (number int64, err error) {
	now, err := m.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	e := m.leases[user]
	if e != nil {
		if err := e.denial(now, r.MinInterval); err != nil {
			return 0, err
		}
	} else if e, err = m.newLeaseLocked(user, r, now); err != nil {
		return 0, err
	}
	bytes := len(user) + len(r.Name) + bytesPerRecord
	m.bytes += bytes - e.end.bytes
	e.end.bytes = bytes
	e.Holder = coord.Holder{Name: r.Name, Number: max(e.Number+1, now.UnixMicro()), Since: now, Until: now.Add(r.Lifetime)}
	e.id, e.held, e.latest = r.ID, true, now.Add(r.MaxLife)
	m.keepLocked(e, e.Until, r)
	return e.Number, nil
}

func (m *Store) newLeaseLocked(user string, r coord.LeaseRequest, now time.Time) (*lease, error) {
	e := &lease{Holder: coord.Holder{Number: m.floor}}
	e.end = ending{at: now, forget: func(m *Store) {
		m.floor = max(m.floor, e.Number)
		delete(m.leases, user)
	}}
	if err := m.addLocked(&e.end, len(user)+len(r.Name)); err != nil {
		return nil, err
	}
	m.leases[user] = e
	return e, nil
}

// denial returns why the lease cannot be had, nil if it can.
func (e *lease) denial(now time.Time, interval time.Duration) error {
	soonest := max(0, e.Since.Add(interval).Sub(now))
	if e.heldAt(now) {
		return &coord.DeniedError{Reason: coord.ErrHeld, RetryAfter: max(soonest, e.Until.Sub(now)), Soonest: soonest, Holder: e.Holder}
	}
	if soonest > 0 {
		return &coord.DeniedError{Reason: coord.ErrTooSoon, RetryAfter: soonest, Soonest: soonest}
	}
	return nil
}

// keepLocked remembers the user for as long as it matters.
func (m *Store) keepLocked(e *lease, until time.Time, r coord.LeaseRequest) {
	at := until.Add(r.KeepNumber)
	if banned := e.Since.Add(r.MinInterval); banned.After(at) {
		at = banned
	}
	m.moveLocked(&e.end, at)
}

// Renew implements [coord.LeaseStore].
func (m *Store) Renew(ctx context.Context, user string, r coord.LeaseRequest) (left time.Duration, err error) {
	now, err := m.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	e := m.leases[user]
	if !e.heldAt(now) || e.id != r.ID {
		return 0, coord.ErrLost
	}
	until := now.Add(r.Lifetime)
	if until.After(e.latest) {
		until = e.latest
	}
	if !until.After(e.Until) {
		return e.Until.Sub(now), coord.ErrMaxLife
	}
	e.Until = until
	m.keepLocked(e, until, r)
	return until.Sub(now), nil
}

// Release implements [coord.LeaseStore].
func (m *Store) Release(ctx context.Context, user string, r coord.LeaseRequest) error {
	now, err := m.begin(ctx)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	e := m.leases[user]
	if !e.heldAt(now) || e.id != r.ID {
		return coord.ErrLost
	}
	e.held = false
	m.keepLocked(e, now, r)
	return nil
}

// Holder implements [coord.LeaseStore].
func (m *Store) Holder(ctx context.Context, user string) (h coord.Holder, held bool, err error) {
	now, err := m.begin(ctx)
	if err != nil {
		return coord.Holder{}, false, err
	}
	defer m.mu.Unlock()
	e := m.leases[user]
	if !e.heldAt(now) {
		return coord.Holder{}, false, nil
	}
	return e.Holder, true, nil
}
