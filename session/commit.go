package session

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/lazyreq/lazyreq/session/storage"
)

// plan describes what the end of a request does to its session.
type plan struct {
	redacted
	delta  *storage.Delta // to save, or nil
	send   bool           // whether the client gets text after the save
	text   string         // a token; "" makes the client forget its token
	maxAge int            // see tokenTransport.send
}

// commit runs once, before the header goes out. It sends a token only after the save has succeeded.
func (m *Manager) commit(ctx context.Context, s Session, _ int, h http.Header) error {
	p := s.state.plan()
	if p.delta != nil {
		ctx, cancel := detach(ctx)
		defer cancel()
		if err := m.store.Commit(ctx, *p.delta); err != nil {
			return &Error{Action: "save", Err: err}
		}
	}
	if p.send {
		m.transport.send(h, p.text, p.maxAge)
	}
	return nil
}

// plan returns what the end of the request does. It is called once the session refuses further writes.
func (s *state) plan() plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.snap.exists && len(s.writes) == 0 && !s.renew && s.user == "":
		return plan{}
	case s.snap.exists || s.isNewLocked():
		return s.planSaveLocked()
	default:
		return plan{send: s.ended && s.snap.sent, maxAge: -1}
	}
}

func (s *state) planSaveLocked() plan {
	p, t, create := plan{}, s.snap.token, !s.snap.exists
	remember := s.remember || s.snap.record.Remembered
	if create {
		t, p.text = newToken(newLocator())
		p.send, p.maxAge = true, s.m.maxAge(0, remember)
	}
	d := s.newDelta(t)
	d.Create, d.Bind, d.Remember = create, s.user, remember
	if s.user != "" {
		d.MaxPerUser = s.m.opts.MaxPerUser
	}
	for name, w := range s.writes {
		d.Changes[name] = w.Change
		if w.guard && !create {
			d.Expect[name] = storage.Lookup(s.snap.record.Fields, name)
		}
	}
	if !create && (s.renew || s.user != "") {
		t, p.text = newToken(t.locator)
		p.send, p.maxAge = true, s.m.maxAge(time.Since(s.snap.record.Created), remember)
		d.Rotate = t.digest
		if s.user == "" && len(s.writes) == 0 && !s.swapped { // the old secret must not read new values
			d.Grace = renewGrace
		}
	}
	p.delta = &d
	return p
}

// newDelta returns a delta without changes for the session of t.
func (s *state) newDelta(t token) storage.Delta {
	return storage.Delta{
		Locator: t.locator, Digest: t.digest, Limits: s.limits(),
		Changes: map[string]storage.Change{}, Expect: map[string]storage.Value{},
	}
}

// maxAge returns the cookie's Max-Age in seconds for a session that was created this long ago. 0 means that the cookie
// ends with the browser. The result fits into 32 bits, as browsers require.
func (m *Manager) maxAge(age time.Duration, remembered bool) int {
	if !m.opts.Cookie.Persistent && !(remembered && m.opts.RememberFor > 0) {
		return 0
	}
	left := math.Ceil((m.limits.For(remembered).Absolute - age).Seconds())
	return int(min(max(1, left), math.MaxInt32))
}
