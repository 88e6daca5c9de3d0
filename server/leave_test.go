package server_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/storage"
)

// heldSessions is a store that doesn't save or end sessions before hold returns.
type heldSessions struct {
	session.Store
	hold atomic.Pointer[func()]
}

func (s *heldSessions) wait() {
	if hold := s.hold.Load(); hold != nil {
		(*hold)()
	}
}

func (s *heldSessions) Commit(ctx context.Context, d storage.Delta) error {
	s.wait()
	return s.Store.Commit(ctx, d)
}

func (s *heldSessions) Destroy(ctx context.Context, l storage.Locator, d storage.Digest) error {
	s.wait()
	return s.Store.Destroy(ctx, l, d)
}

func (s *heldSessions) Revoke(ctx context.Context, user string, match func(storage.Locator) bool) (int, error) {
	s.wait()
	return s.Store.Revoke(ctx, user, match)
}

// leaving is a server with two sessions of one user, and a handler that works on the first
// for a client that leaves.
type leaving struct {
	*server.Server
	logs       *logs
	store      *heldSessions
	own, other *http.Cookie
}

func newLeaving(t *testing.T) *leaving {
	b := inMemory(t)
	s := &leaving{store: &heldSessions{Store: b.sessions}}
	b.sessions = s.store
	s.Server, s.logs = newStored(t, b)
	s.HandleFunc("POST /login", func(_ http.ResponseWriter, req *server.Request) error { return req.Session().Bind("ada") })
	s.HandleFunc("GET /visits", func(w http.ResponseWriter, req *server.Request) error {
		there, err := req.Session().Exists()
		if err != nil {
			return err
		}
		n, err := visits.Get(req.Context())
		fmt.Fprint(w, there, n)
		return err
	})
	s.HandleFunc("POST /visit", func(_ http.ResponseWriter, req *server.Request) error {
		return visits.Add(req.Context(), 1)
	})
	s.own, s.other = ask(s, "POST", "/login").Cookies()[0], ask(s, "POST", "/login").Cookies()[0]
	return s
}

// serve runs act for a client that has left by the time that it is to be done, and saves.
// If late, that is when the store is at it; otherwise before act begins.
func (s *leaving) serve(t *testing.T, act func(session.Session) error, loaded, late bool) {
	began, acted := make(chan struct{}), make(chan error, 1)
	s.HandleFunc("POST /act", func(w http.ResponseWriter, req *server.Request) error {
		if loaded {
			if there, err := req.Session().Exists(); err != nil || !there {
				t.Error(there, err)
			}
		}
		hold := func() { <-req.Context().Done() }
		if close(began); late {
			s.store.hold.Store(&hold)
		} else {
			hold()
		}
		err := act(req.Session())
		w.WriteHeader(http.StatusNoContent)
		s.store.hold.Store(nil)
		acted <- err
		return err
	})
	url, c := listen(t, s)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, "POST", url+"/act", nil)
	require.NoError(t, err)
	req.AddCookie(s.own)
	go func() { <-began; leave() }()
	_, err = c.Do(req)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, <-acted)
	require.Empty(t, s.logs.at("ERROR"))
}

// A client that logs out and closes the page is logged out, even if the session was not
// loaded by then; and a handler's writes are saved.
func TestDisconnectDoesNotCancelLogout(t *testing.T) {
	const gone, there = "false 0", "true 0"
	for name, tt := range map[string]struct {
		act        func(session.Session) error
		own, other string // what is left of the sessions
	}{
		"Destroy":      {session.Session.Destroy, gone, there},
		"RevokeOthers": {func(s session.Session) error { _, err := s.RevokeOthers(); return err }, there, gone},
		"RevokeAll":    {func(s session.Session) error { _, err := s.RevokeAll(); return err }, gone, gone},
	} {
		for when, how := range map[string]struct{ loaded, late bool }{
			"before it is loaded": {false, false},
			"before":              {true, false},
			"meanwhile":           {true, true},
		} {
			t.Run(name+", "+when, func(t *testing.T) {
				s := newLeaving(t)
				s.serve(t, tt.act, how.loaded, how.late)
				require.Equal(t, tt.own, askAs(s, s.own, "GET", "/visits").body)
				require.Equal(t, tt.other, askAs(s, s.other, "GET", "/visits").body)
			})
		}
	}
}

func TestDisconnectDoesNotCancelRevoke(t *testing.T) {
	for name, late := range map[string]bool{"before": false, "meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			s := newLeaving(t)
			all, err := s.Sessions().List(t.Context(), "ada")
			require.NoError(t, err)
			require.Len(t, all, 2)
			s.serve(t, func(v session.Session) error {
				// One of them is its own, which it refuses.
				if v.Revoke(all[0].ID) == nil {
					return nil
				}
				return v.Revoke(all[1].ID)
			}, true, late)
			require.Equal(t, "true 0", askAs(s, s.own, "GET", "/visits").body)
			require.Equal(t, "false 0", askAs(s, s.other, "GET", "/visits").body)
		})
	}
}

func TestDisconnectDoesNotCancelSave(t *testing.T) {
	for name, late := range map[string]bool{"before": false, "meanwhile": true} {
		t.Run("a write, "+name, func(t *testing.T) {
			s := newLeaving(t)
			s.serve(t, func(v session.Session) error { return v.Add("visits", 7) }, true, late)
			require.Equal(t, "true 7", askAs(s, s.own, "GET", "/visits").body)
		})
		t.Run("Renew, "+name, func(t *testing.T) {
			s := newLeaving(t)
			s.serve(t, session.Session.Renew, true, late)
			require.Equal(t, 409, askAs(s, s.own, "POST", "/visit").StatusCode, "the old secret cannot write")
		})
	}
}
