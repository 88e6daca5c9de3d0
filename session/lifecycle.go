package session

import (
	"errors"

	"github.com/lazyreq/lazyreq/reqctx"
)

// Exists reports whether the request has a session: one that was loaded, or one
// that its writes will make.
func (s *Session) Exists() (bool, error) {
	if err := s.loadAndLock(s.c); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	return s.snap.exists || s.isNewLocked(), nil
}

// ID returns a name of the session that stays the same for its lifetime, to count by or
// to log, equal to Info.ID. It is a hash that cannot be used to log in. "" means that
// there is no session; one that this request makes has an ID only once it is saved.
func (s *Session) ID() (string, error) {
	if err := s.loadAndLock(s.c); err != nil {
		return "", err
	}
	defer s.mu.Unlock()
	if !s.snap.exists {
		return "", nil
	}
	return infoID(s.snap.token.locator), nil
}

// Renew gives the session a new secret when it is saved. The values stay. Requests
// that are under way with the old cookie can no longer save. They can still read for
// Options.RenewGrace, provided that the renewing request changes nothing else: if it
// also writes, the old secret becomes invalid at once, so that what is written at a
// login is never visible with a cookie that was planted or stolen before. (Bind is the
// better call at a login.) Renew does nothing without a session.
func (s *Session) Renew() error {
	if err := s.lockForWrite(s.c, "Renew", ""); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.renew = true
	return nil
}

// Destroy removes the session from the store at once, and its cookie from the
// client when the header goes out. Earlier writes of the request are discarded; later
// ones make a new session. A request that loaded the session earlier
// cannot bring it back: its save fails with [ErrGone]. Destroy itself returns
// ErrGone, and removes nothing, if another request has renewed the session since.
// A client that goes away doesn't cancel it: see Options.SaveTimeout. If the header
// goes out while Destroy runs, the client keeps a cookie without a session.
func (s *Session) Destroy() error {
	t, err := s.lockForEnd("Destroy")
	if err != nil {
		return err
	}
	s.mu.Unlock()
	if t != (token{}) {
		ctx, cancel := s.m.detach(s.c)
		defer cancel()
		if err := s.m.store.Destroy(ctx, t.locator, t.digest); err != nil {
			return &Error{Action: "destroy", Err: err}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snap, s.writes, s.size = &snapshot{sent: s.snap.sent}, nil, 0
	s.renew, s.user, s.ended = false, "", true
	return nil
}

// lockForEnd is lockForWrite for methods that end sessions: it loads this one even if
// the client has gone away, and the header may go out meanwhile. It returns the token of
// the saved session.
func (s *Session) lockForEnd(method string) (token, error) {
	if s.err != nil {
		return token{}, s.err
	}
	if s.c.Committed() {
		return token{}, lateError(method, "")
	}
	snap, err := loadKey.Get(s.c)
	if err != nil && s.c.Err() != nil && !errors.Is(err, reqctx.ErrFinished) {
		ctx, cancel := s.m.detach(s.c)
		defer cancel()
		snap, err = s.m.load(ctx)
	}
	if err == nil && snap.old {
		err = &Error{Action: "save", Err: ErrGone}
	}
	if err != nil {
		return token{}, err
	}
	s.lockWith(snap)
	return s.snap.token, nil
}
