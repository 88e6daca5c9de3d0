package memstore

import (
	"container/list"
	"context"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

// List implements [storage.Store].
func (m *Store) List(ctx context.Context, user string, lim storage.Limits) ([]storage.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	var entries []storage.Entry
	for l := range m.users[user] {
		if el := m.aliveLocked(l, lim, now); el != nil {
			entries = append(entries, storage.Entry{Locator: l, Record: el.Value.(*entry).record()})
		}
	}
	return entries, nil
}

// Revoke implements [storage.Store].
func (m *Store) Revoke(ctx context.Context, user string, l storage.Locator) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if el := m.users[user][l]; el != nil {
		m.dropLocked(el)
	}
	return nil
}

// RevokeAll implements [storage.Store]. It is atomic here.
func (m *Store) RevokeAll(ctx context.Context, user string, except storage.Locator) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, now := 0, time.Now()
	for l, el := range m.users[user] {
		if l == except {
			continue
		}
		if e := el.Value.(*entry); !e.limits.Expired(e.created, e.touched, now) {
			n++
		}
		m.dropLocked(el)
	}
	return n, nil
}

// bindLocked makes a session user's, unless user is empty.
func (m *Store) bindLocked(el *list.Element, user string) {
	if user == "" {
		return
	}
	e := el.Value.(*entry)
	m.unbindLocked(e)
	e.user = user
	if m.users[user] == nil {
		m.users[user] = make(map[storage.Locator]*list.Element)
	}
	m.users[user][e.locator] = el
}

func (m *Store) unbindLocked(e *entry) {
	if e.user == "" {
		return
	}
	of := m.users[e.user]
	delete(of, e.locator)
	if len(of) == 0 {
		delete(m.users, e.user)
	}
}
