package session

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

// An Info describes one of a user's sessions. [Field.Of] reads the session's values, which do not appear in the text
// or JSON form of an Info.
type Info struct {
	ID      string    `json:"id"`      // for Revoke; it cannot be used to log in
	Created time.Time `json:"created"` // by the store's clock
	Used    time.Time `json:"used"`    // the last recorded use: see Options.IdleTimeout
	Current bool      `json:"current"` // this is the session of the request that lists

	// Addr and UserAgent are those of the client at the last recorded use, if Options.Devices was set. A client can
	// choose any User-Agent.
	Addr      netip.Addr `json:"addr,omitzero"`
	UserAgent string     `json:"userAgent,omitempty"`

	lookup func(name string) storage.Value // a function, because formatting shows only its address
}

// List returns the sessions that are bound to user, with the newest first. It can be called outside of a request. It may
// remove a session that has ended by the timeouts of m, so m needs the timeouts of the servers.
func (m *Manager) List(ctx context.Context, user string) ([]Info, error) {
	if user == "" {
		return nil, ErrNotBound
	}
	entries, err := m.store.List(ctx, user, m.limits)
	if err != nil {
		return nil, &Error{Action: "list", Err: err}
	}
	infos := make([]Info, len(entries))
	for i, e := range entries {
		addr, agent := parseDevice(e.Record.Device)
		infos[i] = Info{
			ID: infoID(e.Locator), Created: e.Record.Created, Used: e.Record.Touched,
			Addr: addr, UserAgent: agent,
			lookup: func(name string) storage.Value { return storage.Lookup(e.Record.Fields, name) },
		}
	}
	slices.SortFunc(infos, func(a, b Info) int { return b.Created.Compare(a.Created) })
	return infos, nil
}

// Revoke removes the session of user that has this Info.ID, at once. It returns nil if the session has ended or belongs to
// another user. It can be called outside of a request.
func (m *Manager) Revoke(ctx context.Context, user, id string) error {
	_, err := m.revoke(ctx, user, func(l storage.Locator) bool { return infoID(l) == id })
	return err
}

// RevokeAll removes all sessions of user at once and returns their number, with the guarantees of
// [Session.RevokeOthers]. It can be called outside of a request.
func (m *Manager) RevokeAll(ctx context.Context, user string) (int, error) {
	return m.revoke(ctx, user, func(storage.Locator) bool { return true })
}

func (m *Manager) revoke(ctx context.Context, user string, match func(storage.Locator) bool) (int, error) {
	if user == "" {
		return 0, ErrNotBound
	}
	n, err := m.store.Revoke(ctx, user, match)
	if err != nil {
		return n, &Error{Action: "revoke", Err: err}
	}
	return n, nil
}

// infoID returns a hash that identifies a session without revealing its locator.
func infoID(l storage.Locator) string {
	sum := sha256.Sum256(l[:])
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// List returns the saved sessions of this session's user, the newest first, including this session once it is saved. It
// returns [ErrNotBound] if no user is bound.
func (s Session) List() ([]Info, error) {
	st, err := s.lock()
	if err != nil {
		return nil, err
	}
	user, own := st.userLocked(), infoID(st.snap.token.locator)
	st.mu.Unlock()
	infos, err := st.m.List(s.ctx, user)
	for i := range infos {
		infos[i].Current = infos[i].ID == own
	}
	return infos, err
}

// Revoke removes the session of the user that has this Info.ID, at once. It returns nil if that session has already
// ended. If it is this session, Revoke does what Destroy does.
func (s Session) Revoke(id string) error {
	st, user, own, err := s.authorize("Revoke")
	switch {
	case err != nil:
		return err
	case id == infoID(own):
		return s.Destroy()
	}
	_, err = st.revoke(user, func(l storage.Locator) bool { return infoID(l) == id })
	return err
}

// RevokeOthers removes all other sessions of the user at once, for instance after a change of the password, and returns
// their number. After an error, some may be left. It returns [ErrNotBound] if no user is bound to this session, and
// [ErrGone] if this session ended or was renewed meanwhile.
//
// A revoked session never comes back: its record is removed, and a request that has loaded it cannot save. A session
// that logs in at the same moment may survive, as if the login came after the revocation.
func (s Session) RevokeOthers() (int, error) {
	st, user, own, err := s.authorize("RevokeOthers")
	if err != nil {
		return 0, err
	}
	return st.revoke(user, func(l storage.Locator) bool { return l != own })
}

// RevokeAll removes all sessions of the user, including this one, and returns their number. It does what RevokeOthers
// and Destroy do together.
func (s Session) RevokeAll() (int, error) {
	st, user, _, err := s.authorize("RevokeAll")
	if err != nil {
		return 0, err
	}
	n, err := st.revoke(user, func(storage.Locator) bool { return true })
	if err != nil {
		return n, err
	}
	return n, s.Destroy()
}

func (s *state) revoke(user string, match func(storage.Locator) bool) (int, error) {
	ctx, cancel := detach(s.c)
	defer cancel()
	return s.m.revoke(ctx, user, match)
}

// authorize is called before the session ends others. It returns the session's user and locator. It loads the session
// again: if the session was stolen and has been revoked in the meantime, it must not end other sessions.
func (s Session) authorize(method string) (st *state, user string, own storage.Locator, err error) {
	st, t, err := s.lockForEnd(method)
	if err != nil {
		return nil, "", own, err
	}
	user = st.userLocked()
	st.mu.Unlock()
	switch {
	case user == "":
		return nil, "", own, ErrNotBound
	case t == token{}: // the session does not exist before the save
		return st, user, own, nil
	}
	ctx, cancel := detach(st.c)
	defer cancel()
	rec, err := st.m.store.Load(ctx, t.locator, t.digest, st.limits())
	if errors.Is(err, storage.ErrNotFound) || err == nil && rec.Old {
		err = ErrGone
	}
	if err != nil {
		return nil, "", own, &Error{Action: "revoke", Err: err}
	}
	return st, user, t.locator, nil
}
