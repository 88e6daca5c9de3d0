package session

// Exists reports whether the request has a session: one that was loaded, or one
// that its writes will make.
func (s Session) Exists() (bool, error) {
	st, err := s.lock()
	if err != nil {
		return false, err
	}
	defer st.mu.Unlock()
	return st.snap.exists || st.isNewLocked(), nil
}

// ID returns a name of the session that stays the same for its lifetime, to count by or
// to log, equal to Info.ID. It is a hash that cannot be used to log in. "" means that
// there is no session; one that this request makes has an ID only once it is saved.
func (s Session) ID() (string, error) {
	st, err := s.lock()
	if err != nil {
		return "", err
	}
	defer st.mu.Unlock()
	if !st.snap.exists {
		return "", nil
	}
	return infoID(st.snap.token.locator), nil
}

// Renew gives the session a new secret when it is saved. The values stay. Requests
// that are under way with the old cookie can no longer save. They can still read for
// Options.RenewGrace, provided that the renewing request changes nothing else: if it
// also writes, the old secret becomes invalid at once, so that what is written at a
// login is never visible with a cookie that was planted or stolen before. (Bind is the
// better call at a login.) Renew does nothing without a session.
func (s Session) Renew() error {
	st, err := s.lockForWrite("Renew", "")
	if err != nil {
		return err
	}
	defer st.mu.Unlock()
	st.renew = true
	return nil
}

// Destroy removes the session from the store at once, and its cookie from the
// client when the header goes out. Earlier writes of the request are discarded; later
// ones make a new session. A request that loaded the session earlier
// cannot bring it back: its save fails with [ErrGone]. Destroy itself returns
// ErrGone, and removes nothing, if another request has renewed the session since.
// A client that goes away doesn't cancel it: see Options.SaveTimeout. If the header
// goes out while Destroy runs, the client keeps a cookie without a session.
func (s Session) Destroy() error {
	st, t, err := s.lockForEnd("Destroy")
	if err != nil {
		return err
	}
	st.mu.Unlock()
	if t != (token{}) {
		ctx, cancel := st.m.detach(st.c)
		defer cancel()
		if err := st.m.store.Destroy(ctx, t.locator, t.digest); err != nil {
			return &Error{Action: "destroy", Err: err}
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.snap, st.writes, st.size = &snapshot{sent: st.snap.sent}, nil, 0
	st.renew, st.user, st.ended = false, "", true
	return nil
}
