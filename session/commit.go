package session

import (
	"context"
	"net/http"
	"time"
)

// plan is what the end of a request means for its session.
type plan struct {
	redacted
	delta  *Delta // to save, or nil
	token  token  // of the cookie to set after the save
	set    bool   // the client needs that cookie
	maxAge int    // its life in seconds; 0: until the browser ends
	expire bool   // the client's cookie is void
}

// commit runs once, before the header goes out. It sets no cookie unless the
// save has succeeded.
func (m *Manager) commit(ctx context.Context, s *Session, h http.Header) error {
	p := s.plan(ctx)
	if p.expire {
		m.cookie.send(h, "", -1)
	}
	if p.delta == nil {
		return nil
	}
	if err := m.store.Commit(ctx, *p.delta); err != nil {
		return &Error{Action: "save", Err: err}
	}
	if p.set {
		m.cookie.send(h, p.token.text(), p.maxAge)
	}
	return nil
}

// plan says what is to be saved, now that writes are refused. A session that was
// not loaded by now has no writes.
func (s *Session) plan(ctx context.Context) plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap, err, ok := loadKey.Peek(ctx)
	if !ok || err != nil {
		return plan{}
	}
	if s.liveLocked(snap) {
		return s.updateLocked(snap)
	}
	if sets := s.setsLocked(); len(sets) > 0 {
		return s.createLocked(sets)
	}
	return plan{expire: s.ended && snap.sent}
}

func (s *Session) updateLocked(snap *snapshot) plan {
	if len(s.changes) == 0 && !s.renew {
		return plan{}
	}
	p := plan{delta: &Delta{
		Locator: snap.token.locator, Digest: snap.token.digest(), Changes: s.changes, Limits: s.m.limits,
	}}
	if s.renew {
		p.set, p.token = true, snap.token.renewed()
		p.delta.Rotate = p.token.digest()
		p.maxAge = s.m.maxAge(time.Since(snap.created))
	}
	return p
}

func (s *Session) createLocked(sets map[string]Change) plan {
	t := newToken()
	return plan{set: true, token: t, maxAge: s.m.maxAge(0), delta: &Delta{
		Create: true, Locator: t.locator, Digest: t.digest(), Changes: sets, Limits: s.m.limits,
	}}
}

// maxAge returns how many seconds a cookie may live for a session of that age.
func (m *Manager) maxAge(age time.Duration) int {
	if !m.cookie.Persistent {
		return 0
	}
	return max(1, int((m.limits.Absolute-age+time.Second-1)/time.Second))
}
