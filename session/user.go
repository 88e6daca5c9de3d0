package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/lazyreq/lazyreq/internal/option"
	"github.com/lazyreq/lazyreq/session/storage"
)

// RequireUser returns the user to whom the session of ctx's request is bound, or
// [ErrNotBound], which is a 401 as a response.
func RequireUser(ctx context.Context) (string, error) {
	s, _ := From(ctx) // after an error, User returns it
	user, err := s.User()
	if err == nil && user == "" {
		err = ErrNotBound
	}
	return user, err
}

// Bind makes the session user's when it is saved, and makes a session if there is none. Call it at
// login: the session gets a new secret, and every cookie sent before becomes invalid at once, so
// that a cookie that was planted or stolen before gives no access. The values stay, such as a
// cart of a visitor; but those of another user don't: Bind first destroys a session that is bound to
// one. user is any string that is not empty and not longer than Options.MaxFieldBytes
// ([ErrTooLarge]), best an id that never changes. The store keeps it with the session, unencrypted.
func (s Session) Bind(user string) error {
	if user == "" {
		return errors.New("session: Bind: user is empty")
	}
	m, err := managerKey.Get(s.ctx)
	if err != nil {
		return err
	}
	if limit := m.opts.MaxFieldBytes; len(user) > limit {
		return option.WithText(fmt.Sprintf("session: user too large: %d bytes, and Options.MaxFieldBytes is %d", len(user), limit), ErrTooLarge)
	}
	st, err := s.lockForWrite("Bind", "")
	if err != nil {
		return err
	}
	bound := st.userLocked()
	if bound == "" || bound == user {
		st.user = user
		st.mu.Unlock()
		return nil
	}
	st.mu.Unlock()
	if err := s.Destroy(); err != nil {
		return err
	}
	return s.Bind(user)
}

// User returns the user to whom the session is bound, or will be when it is saved; ""
// if there is none.
func (s Session) User() (string, error) {
	st, err := s.lock()
	if err != nil {
		return "", err
	}
	defer st.mu.Unlock()
	return st.userLocked(), nil
}

func (s *state) userLocked() string {
	if s.user != "" {
		return s.user
	}
	return s.snap.user
}

// List returns the saved sessions of this session's user, the newest first; this
// session is among them once it is saved. It returns [ErrNotBound] if no user is bound.
func (s Session) List() ([]Info, error) {
	st, err := s.lock()
	if err != nil {
		return nil, err
	}
	user, own := st.userLocked(), st.snap.token.locator
	st.mu.Unlock()
	return st.m.list(s.ctx, user, own)
}

// Revoke removes one of the user's other sessions, by its Info.ID, at once. It returns
// nil if that session has already ended. To end this session, use Destroy.
func (s Session) Revoke(id string) error {
	st, user, own, err := s.authorize("Revoke")
	if err != nil {
		return err
	}
	if id == infoID(own) {
		return errors.New("session: Revoke of the request's own session; use Destroy")
	}
	ctx, cancel := st.m.detach(st.c)
	defer cancel()
	return st.m.Revoke(ctx, user, id)
}

// RevokeOthers removes all the other sessions of the user, at once, and returns how
// many there were: after a change of the password, for instance. After an error some may
// be left. It returns [ErrNotBound] if no user is bound to this session, and [ErrGone] if
// this session ended or was renewed meanwhile.
//
// A revoked session never comes back: its record is removed, and a request that has
// loaded it cannot save. A login at the same moment may come after the revocation.
func (s Session) RevokeOthers() (int, error) {
	st, user, own, err := s.authorize("RevokeOthers")
	if err != nil {
		return 0, err
	}
	return st.revokeAll(user, own)
}

// RevokeAll is RevokeOthers and Destroy: it removes all sessions of the user.
func (s Session) RevokeAll() (int, error) {
	st, user, _, err := s.authorize("RevokeAll")
	if err != nil {
		return 0, err
	}
	n, err := st.revokeAll(user, storage.Locator{})
	if err != nil {
		return n, err
	}
	return n, s.Destroy()
}

func (s *state) revokeAll(user string, except storage.Locator) (int, error) {
	ctx, cancel := s.m.detach(s.c)
	defer cancel()
	return s.m.revokeAll(ctx, user, except)
}

// authorize returns the user and the own locator of a session that is about to end
// others. It asks the store again, because a request with a stolen session must not end
// others once that session was revoked.
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
	case t == token{}: // about to be made
		return st, user, own, nil
	}
	ctx, cancel := st.m.detach(st.c)
	defer cancel()
	rec, err := st.m.store.Load(ctx, t.locator, t.digest, st.m.limits)
	if errors.Is(err, storage.ErrNotFound) || err == nil && rec.Old {
		err = ErrGone
	}
	if err != nil {
		return nil, "", own, &Error{Action: "revoke", Err: err}
	}
	return st, user, t.locator, nil
}
