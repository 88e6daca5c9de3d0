package session

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

// An Info is one of a user's sessions. [Field.Of] reads its values, which neither show
// when an Info is formatted nor are part of its JSON.
type Info struct {
	ID      string                          `json:"id"`      // for Revoke, in a form for instance; it cannot be used to log in
	Created time.Time                       `json:"created"` // by the store's clock
	Used    time.Time                       `json:"used"`    // as far as it was recorded: see Options.IdleTimeout
	Current bool                            `json:"current"` // the session of the request that lists
	lookup  func(name string) storage.Value // formatting shows only its address
}

// List returns the sessions that are bound to user, the newest first. It needs no
// request.
func (m *Manager) List(ctx context.Context, user string) ([]Info, error) {
	return m.list(ctx, user, storage.Locator{})
}

// Revoke removes one of user's sessions, by its Info.ID, at once. It returns nil if the
// session has ended or belongs to another user. It needs no request.
func (m *Manager) Revoke(ctx context.Context, user, id string) error {
	entries, err := m.entries(ctx, user)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(entries, func(e storage.Entry) bool { return infoID(e.Locator) == id })
	if i < 0 {
		return nil
	}
	if err := m.store.Revoke(ctx, user, entries[i].Locator); err != nil {
		return &Error{Action: "revoke", Err: err}
	}
	return nil
}

// RevokeAll removes every session that is bound to user, at once, and returns how
// many there were, with the guarantees of [Session.RevokeOthers]. It needs no request.
func (m *Manager) RevokeAll(ctx context.Context, user string) (int, error) {
	return m.revokeAll(ctx, user, storage.Locator{})
}

func (m *Manager) revokeAll(ctx context.Context, user string, except storage.Locator) (int, error) {
	if user == "" {
		return 0, ErrNotBound
	}
	n, err := m.store.RevokeAll(ctx, user, except)
	if err != nil {
		return n, &Error{Action: "revoke", Err: err}
	}
	return n, nil
}

func (m *Manager) list(ctx context.Context, user string, own storage.Locator) ([]Info, error) {
	entries, err := m.entries(ctx, user)
	if err != nil {
		return nil, err
	}
	infos := make([]Info, len(entries))
	for i, e := range entries {
		infos[i] = Info{
			ID: infoID(e.Locator), Created: e.Record.Created, Used: e.Record.Touched,
			Current: e.Locator == own,
			lookup:  func(name string) storage.Value { return storage.Lookup(e.Record.Fields, name) },
		}
	}
	slices.SortFunc(infos, func(a, b Info) int { return b.Created.Compare(a.Created) })
	return infos, nil
}

func (m *Manager) entries(ctx context.Context, user string) ([]storage.Entry, error) {
	if user == "" {
		return nil, ErrNotBound
	}
	entries, err := m.store.List(ctx, user, m.limits)
	if err != nil {
		return nil, &Error{Action: "list", Err: err}
	}
	return entries, nil
}

// infoID returns a hash that identifies a session without revealing its locator.
func infoID(l storage.Locator) string {
	sum := sha256.Sum256(l[:])
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
