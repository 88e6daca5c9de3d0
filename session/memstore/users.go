package memstore

import (
	"context"
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
			entries = append(entries, storage.Entry{Locator: l, Record: e.record()})
		}
	}
	return entries, nil
}

// Revoke implements session.Store.
func (m *Store) Revoke(ctx context.Context, user string, l storage.Locator) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if e := m.users[user][l]; e != nil {
		m.removeLocked(e)
	}
	return nil
}

// RevokeAll implements session.Store. It is atomic.
func (m *Store) RevokeAll(ctx context.Context, user string, except storage.Locator) (int, error) {
	if err := m.lock(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	n, now := 0, time.Now()
	for l, e := range m.users[user] {
		if l == except {
			continue
		}
		if !e.limits.Expired(e.created, e.touched, now) {
			n++
		}
		m.removeLocked(e)
	}
	return n, nil
}

// bindLocked binds a session to user, unless user is empty.
func (m *Store) bindLocked(e *entry, user string) {
	if user == "" {
		return
	}
	m.unbindLocked(e)
	e.user = user
	if m.users[user] == nil {
		m.users[user] = make(map[storage.Locator]*entry)
	}
	m.users[user][e.locator] = e
}

func (m *Store) unbindLocked(e *entry) {
	if e.user == "" {
		return
	}
	sessions := m.users[e.user]
	delete(sessions, e.locator)
	if len(sessions) == 0 {
		delete(m.users, e.user)
	}
}
