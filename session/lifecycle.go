package session

// Exists reports whether the request has a session, either one that was loaded or one that its writes will create.
func (s Session) Exists() (bool, error) {
	st, err := s.lock()
	if err != nil {
		return false, err
	}
	defer st.mu.Unlock()
	return st.snap.exists || st.isNewLocked(), nil
}

// ID returns the session's Info.ID, for logs and statistics. It stays the same for the session's lifetime and cannot
// be used to log in. It is "" if there is no session. A session that this request creates has an ID once it is saved.
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

// Renew gives the session a new secret when it is saved. The session keeps its values. Renew does nothing if there is
// no session.
//
// Other requests with the old cookie can no longer save. They can still read for 10 seconds if the renewing
// request changes nothing else. If it also writes, the old secret becomes invalid at once, so that a planted or stolen
// cookie never shows the values of a login. At a login, call Bind instead.
func (s Session) Renew() error {
	st, err := s.lockForWrite("Renew", "")
	if err != nil {
		return err
	}
	defer st.mu.Unlock()
	st.renew = true
	return nil
}

// Destroy removes the session from the store at once, and its cookie from the client when the header goes out. It
// discards the request's earlier writes. Later writes create a new session. A request that loaded the session earlier
// cannot bring it back: its save fails with [ErrGone]. Destroy itself returns ErrGone, and removes nothing, if
// another request has renewed the session since. The call goes on for up to 5 seconds if the client leaves. If
// the header goes out while Destroy runs, the client keeps a cookie that belongs to no session.
func (s Session) Destroy() error {
	st, t, err := s.lockForEnd("Destroy")
	if err != nil {
		return err
	}
	st.mu.Unlock()
	if t != (token{}) {
		ctx, cancel := detach(st.c)
		defer cancel()
		if err := st.m.store.Destroy(ctx, t.locator, t.digest); err != nil {
			return &Error{Action: "destroy", Err: err}
		}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.snap, st.writes, st.size = &snapshot{sent: st.snap.sent}, nil, 0
	st.renew, st.user, st.remember, st.ended = false, "", false, true
	return nil
}
