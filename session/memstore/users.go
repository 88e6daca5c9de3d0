package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

// List implements session.Store.
func (m *Store) List(ctx context.Context, user string, lim storage.Limits) ([]storage.Entry, error) {
	if err := m.lock(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	now := time.Now()
	var entries []storage.Entry
	for l := range m.users[user] {
		if e := m.findLocked(l, lim, now); e != nil {
			entries = append(entries, storage.Entry{Locator: l, Record: e.record})
		}
	}
	return entries, nil
}

// Revoke implements session.Store. It is atomic.
func (m *Store) Revoke(ctx context.Context, user string, match func(storage.Locator) bool) (int, error) {
	if err := m.lock(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	n, now := 0, time.Now()
	for l, e := range m.users[user] {
		if !match(l) {
			continue
		}
		if !e.expired(now) {
			n++
		}
		m.removeLocked(e)
	}
	return n, nil
}

func (m *Store) bindLocked(e *entry, user string) {
	m.unbindLocked(e)
	m.binds++
	e.record.User, e.bound = user, m.binds
	if m.users[user] == nil {
		m.users[user] = make(map[storage.Locator]*entry)
	}
	m.users[user][e.locator] = e
}

// endOldestLocked removes a user's sessions except the n that were bound last. It also removes expired sessions, because
// longer limits would let them load again.
func (m *Store) endOldestLocked(user string, n int, now time.Time) {
	var live []*entry
	for _, e := range m.users[user] {
		if e.expired(now) {
			m.removeLocked(e)
		} else {
			live = append(live, e)
		}
	}
	slices.SortFunc(live, func(a, b *entry) int { return cmp.Compare(a.bound, b.bound) })
	for _, e := range live[:max(0, len(live)-n)] {
		m.removeLocked(e)
	}
}

func (m *Store) unbindLocked(e *entry) {
	sessions := m.users[e.record.User]
	delete(sessions, e.locator)
	if len(sessions) == 0 {
		delete(m.users, e.record.User)
	}
}
