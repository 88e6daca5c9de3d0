package coord

import (
	"context"
	"time"
)

// memoryLease is what is known of a user, guarded by Memory.mu.
type memoryLease struct {
	Holder // the last one; its Number is the last, too
	id     [16]byte
	held   bool      // was not released
	latest time.Time // when it ends whatever is renewed
	end    ending
}

// heldAt reports whether the lease has a holder.
func (e *memoryLease) heldAt(now time.Time) bool {
	return e != nil && e.held && now.Before(e.Until)
}

// Acquire implements [LeaseStore].
func (m *Memory) Acquire(ctx context.Context, user string, r LeaseRequest) (number int64, err error) {
	now, err := m.beginLease(ctx, user, r)
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
	e.Holder = Holder{Name: r.Name, Number: max(e.Number+1, now.UnixMicro()), Since: now, Until: now.Add(r.Lifetime)}
	e.id, e.held, e.latest = r.ID, true, now.Add(r.MaxLife)
	m.keepLocked(e, e.Until, r)
	return e.Number, nil
}

// beginLease is begin, after a check of what was asked for.
func (m *Memory) beginLease(ctx context.Context, user string, r LeaseRequest) (now time.Time, err error) {
	if err := checkLease(user, r); err != nil {
		return now, err
	}
	return m.begin(ctx)
}

func (m *Memory) newLeaseLocked(user string, r LeaseRequest, now time.Time) (*memoryLease, error) {
	e := &memoryLease{Holder: Holder{Number: m.floor}}
	e.end = ending{at: now, forget: func(m *Memory) {
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
func (e *memoryLease) denial(now time.Time, interval time.Duration) error {
	soonest := max(0, e.Since.Add(interval).Sub(now))
	if e.heldAt(now) {
		return &DeniedError{Reason: ErrHeld, RetryAfter: max(soonest, e.Until.Sub(now)), Soonest: soonest, Holder: e.Holder}
	}
	if soonest > 0 {
		return &DeniedError{Reason: ErrTooSoon, RetryAfter: soonest, Soonest: soonest}
	}
	return nil
}

// keepLocked remembers the user for as long as it matters.
func (m *Memory) keepLocked(e *memoryLease, until time.Time, r LeaseRequest) {
	at := until.Add(remember)
	if banned := e.Since.Add(r.MinInterval); banned.After(at) {
		at = banned
	}
	m.moveLocked(&e.end, at)
}

// Renew implements [LeaseStore].
func (m *Memory) Renew(ctx context.Context, user string, r LeaseRequest) (left time.Duration, err error) {
	now, err := m.beginLease(ctx, user, r)
	if err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	e := m.leases[user]
	if !e.heldAt(now) || e.id != r.ID {
		return 0, ErrLost
	}
	until := now.Add(r.Lifetime)
	if until.After(e.latest) {
		until = e.latest
	}
	if !until.After(e.Until) {
		return e.Until.Sub(now), ErrMaxLife
	}
	e.Until = until
	m.keepLocked(e, until, r)
	return until.Sub(now), nil
}

// Release implements [LeaseStore].
func (m *Memory) Release(ctx context.Context, user string, r LeaseRequest) error {
	now, err := m.beginLease(ctx, user, r)
	if err != nil {
		return err
	}
	defer m.mu.Unlock()
	e := m.leases[user]
	if !e.heldAt(now) || e.id != r.ID {
		return ErrLost
	}
	e.held = false
	m.keepLocked(e, now, r)
	return nil
}

// Holder implements [LeaseStore].
func (m *Memory) Holder(ctx context.Context, user string) (h Holder, held bool, err error) {
	if err := checkUser(user); err != nil {
		return Holder{}, false, err
	}
	now, err := m.begin(ctx)
	if err != nil {
		return Holder{}, false, err
	}
	defer m.mu.Unlock()
	e := m.leases[user]
	if !e.heldAt(now) {
		return Holder{}, false, nil
	}
	return e.Holder, true, nil
}
