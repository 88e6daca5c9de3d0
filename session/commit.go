package session

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

// plan is what the end of a request means for its session.
type plan struct {
	redacted
	delta  *storage.Delta // to save, or nil
	token  token          // to send after the save
	set    bool           // the client needs that token
	maxAge int            // the life of its cookie in seconds; 0: until the browser ends
	expire bool           // the client's token is void
}

// commit runs once, before the header goes out. It sends no token unless the
// save has succeeded.
func (m *Manager) commit(ctx context.Context, s *Session, h http.Header) error {
	p := s.plan(ctx)
	if p.expire {
		m.carrier.send(h, "", -1)
		makePrivate(h)
	}
	if p.delta == nil {
		return nil
	}
	lasting, cancel := m.lasting(ctx)
	defer cancel()
	if err := m.store.Commit(lasting, *p.delta); err != nil {
		return &Error{Action: "save", Err: err}
	}
	if p.set {
		m.carrier.send(h, p.token.text(), p.maxAge)
		makePrivate(h)
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
	if s.createsLocked() {
		return s.createLocked()
	}
	return plan{expire: s.ended && snap.sent}
}

func (s *Session) updateLocked(snap *snapshot) plan {
	if len(s.writes) == 0 && !s.renew && s.user == "" {
		return plan{}
	}
	d := s.m.delta(snap.token)
	d.Changes = make(map[string]storage.Change, len(s.writes))
	for name, w := range s.writes {
		d.Changes[name] = w.Change
		if w.guard {
			d.ExpectField(name, s.storedLocked(snap, name))
		}
	}
	p := plan{delta: &d}
	if s.renew || s.user != "" {
		p.set, p.token = true, snap.token.renewed()
		p.maxAge = s.m.maxAge(time.Since(snap.created))
		d.Rotate, d.Bind = p.token.digest(), s.user
		if s.user == "" && len(s.writes)+len(s.known) == 0 { // nothing that an old secret must not read
			d.Grace = s.m.grace
		}
	}
	return p
}

// createLocked leaves deletions out: a new session has nothing to delete.
func (s *Session) createLocked() plan {
	t := newToken()
	d := s.m.delta(t)
	d.Create, d.Bind = true, s.user
	d.Changes = make(map[string]storage.Change, len(s.writes))
	for name, w := range s.writes {
		if w.Op != storage.OpDelete {
			d.Changes[name] = w.Change
		}
	}
	return plan{set: true, token: t, maxAge: s.m.maxAge(0), delta: &d}
}

// delta returns one that changes nothing yet.
func (m *Manager) delta(t token) storage.Delta {
	return storage.Delta{Locator: t.locator, Digest: t.digest(), Limits: m.limits}
}

// maxAge returns how many seconds a cookie may live for a session of that age. It
// fits into 32 bits, which browsers cut short anyhow.
func (m *Manager) maxAge(age time.Duration) int {
	if !m.persistent {
		return 0
	}
	left := math.Ceil((m.limits.Absolute - age).Seconds())
	return int(min(max(1, left), math.MaxInt32))
}
