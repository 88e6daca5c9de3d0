package session

import (
	"errors"
	"fmt"

	"github.com/lazyreq/lazyreq/session/storage"
)

// ErrNotBound is returned by what concerns the sessions of a user, for a session
// that is nobody's.
var ErrNotBound = errors.New("session: not bound to a user")

// Bind makes the session user's when it is saved, in place of any other user it was
// bound to, and makes a session if there is none. It is the call for a login: the
// session gets a new secret, and every cookie sent before is worthless at once, so
// that nobody who planted or saw one shares in it. user is any string that is not
// empty and not longer than Options.MaxFieldBytes (ErrTooLarge), best an id that
// never changes. It is stored with the session as it is.
func (s *Session) Bind(user string) error {
	if user == "" {
		return errors.New("session: Bind needs a user")
	}
	if s.err == nil && len(user) > s.m.maxFieldBytes {
		return fmt.Errorf("session: user: %w: %d bytes, and Options.MaxFieldBytes is %d", ErrTooLarge, len(user), s.m.maxFieldBytes)
	}
	return s.mark("Bind", func() { s.user = user })
}

// User returns whom the session is bound to, or is going to be; empty for nobody.
func (s *Session) User() (string, error) {
	snap, err := s.load(s.c)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.userLocked(snap), nil
}

func (s *Session) userLocked(snap *snapshot) string {
	if s.user == "" && s.liveLocked(snap) {
		return snap.user
	}
	return s.user
}

// List returns the saved sessions of this session's user, the newest first. This
// session is among them once it is saved. It fails with ErrNotBound if it is
// nobody's.
func (s *Session) List() ([]Info, error) {
	user, own, err := s.owner()
	if err != nil {
		return nil, err
	}
	return s.m.list(s.c, user, own)
}

// Revoke removes one of the user's other sessions, by its Info.ID, at once. A
// session that is gone already is no error. This session is ended with Destroy.
func (s *Session) Revoke(id string) error {
	user, own, err := s.entitled("Revoke")
	if err != nil {
		return err
	}
	if id == infoID(own) {
		return errors.New("session: Revoke of the request's own session; use Destroy")
	}
	ctx, cancel := s.m.lasting(s.c)
	defer cancel()
	return s.m.Revoke(ctx, user, id)
}

// RevokeOthers removes all the other sessions of the user, at once, and returns how
// many there were: after a change of the password, say. After an error some may be
// left. It fails with ErrNotBound if this session is nobody's, and with ErrGone if
// it was ended or renewed itself meanwhile.
//
// What is revoked never logs in again: its record is removed, and a request that has
// loaded it cannot save. A login that runs at the same moment may come after it.
func (s *Session) RevokeOthers() (int, error) {
	user, own, err := s.entitled("RevokeOthers")
	if err != nil {
		return 0, err
	}
	ctx, cancel := s.m.lasting(s.c)
	defer cancel()
	return s.m.revokeAll(ctx, user, own)
}

// RevokeAll is RevokeOthers and Destroy: it removes all sessions of the user.
func (s *Session) RevokeAll() (int, error) {
	user, _, err := s.entitled("RevokeAll")
	if err != nil {
		return 0, err
	}
	ctx, cancel := s.m.lasting(s.c)
	defer cancel()
	n, err := s.m.revokeAll(ctx, user, storage.Locator{})
	if err != nil {
		return n, err
	}
	return n, s.Destroy()
}

// owner returns the user, and the session's own locator if it is saved.
func (s *Session) owner() (user string, own storage.Locator, err error) {
	snap, err := s.load(s.c)
	if err != nil {
		return "", own, err
	}
	return s.ownerOf(snap)
}

func (s *Session) ownerOf(snap *snapshot) (user string, own storage.Locator, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	user = s.userLocked(snap)
	if user == "" {
		return "", own, ErrNotBound
	}
	if s.liveLocked(snap) {
		own = snap.token.locator
	}
	return user, own, nil
}

// entitled is owner for a session that is about to end others. It asks the store
// again, because a request that a stolen session has begun must not end them after
// that one was revoked.
func (s *Session) entitled(doing string) (user string, own storage.Locator, err error) {
	snap, err := s.ending(doing)
	if err != nil {
		return "", own, err
	}
	if user, own, err = s.ownerOf(snap); err != nil || own == (storage.Locator{}) {
		return user, own, err
	}
	ctx, cancel := s.m.lasting(s.c)
	defer cancel()
	rec, err := s.m.store.Load(ctx, own, snap.token.digest(), s.m.limits)
	switch {
	case errors.Is(err, storage.ErrNotFound), err == nil && rec.Old:
		return "", own, &Error{Action: "revoke", Err: ErrGone}
	case err != nil:
		return "", own, &Error{Action: "revoke", Err: err}
	}
	return user, own, nil
}
