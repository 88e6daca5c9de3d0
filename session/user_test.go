package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

var device = session.NewField[string]("device")

// bind logs user in on a device and returns the Cookie header for the session.
func (s *site) bind(t testing.TB, cookie, user, on string) string {
	t.Helper()
	return cookieOf(t, s.do(t, cookie, func(ctx context.Context, v session.Session) {
		require.NoError(t, errors.Join(v.Bind(user), device.Set(ctx, on)))
	}))
}

// bound returns the user to whom the session of a Cookie header is bound.
func (s *site) bound(t testing.TB, cookie string) (user string) {
	t.Helper()
	s.do(t, cookie, func(_ context.Context, v session.Session) { user = must(v.User()) })
	return user
}

func devices(infos []session.Info) (list []string) {
	for _, i := range infos {
		list = append(list, device.Of(i))
	}
	return list
}

func TestBindMakesASession(t *testing.T) {
	s := newSite(t, session.Options{})
	h := s.do(t, "", func(_ context.Context, v session.Session) {
		require.NoError(t, v.Bind("ada"))
		require.Equal(t, "ada", must(v.User()))
		require.True(t, must(v.Exists()))
		require.Error(t, v.Bind(""))
	})
	require.Equal(t, [3]int64{0, 1, 0}, s.store.calls())
	require.Equal(t, "ada", s.bound(t, cookieOf(t, h)))
	require.Empty(t, s.bound(t, ""))
}

func TestBindReplacesTheSecretAtOnce(t *testing.T) {
	s := newSite(t, session.Options{})
	planted := s.login(t, "guest")
	mine := s.bind(t, planted, "ada", "phone")
	require.NotEqual(t, planted, mine)
	require.Equal(t, "guest", s.user(t, mine), "the values stay")
	require.Empty(t, s.user(t, planted))
	again := s.bind(t, mine, "bob", "phone")
	require.Empty(t, s.bound(t, mine))
	require.Equal(t, "bob", s.bound(t, again))
	require.Equal(t, "bob", s.bound(t, cookieOf(t, s.do(t, again, renew))), "Renew keeps the user")
}

func TestListShowsTheSessionsOfTheUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, session.Options{})
		phone := s.bind(t, "", "ada", "phone")
		pass(time.Minute)
		laptop := s.bind(t, "", "ada", "laptop")
		s.bind(t, "", "bob", "desk")
		pass(10 * time.Minute)
		require.Equal(t, "ada", s.bound(t, phone)) // counts as use of the session
		s.do(t, laptop, func(_ context.Context, v session.Session) {
			infos := must(v.List())
			require.Equal(t, []string{"laptop", "phone"}, devices(infos))
			require.Equal(t, []bool{true, false}, []bool{infos[0].Current, infos[1].Current})
			require.Equal(t, time.Now().Add(-10*time.Minute).UnixNano(), infos[0].Created.UnixNano())
			require.Equal(t, time.Now().UnixNano(), infos[1].Used.UnixNano())
			require.NotContains(t, laptop, infos[0].ID)
		})
		infos := must(s.m.List(t.Context(), "ada"))
		require.Equal(t, []string{"laptop", "phone"}, devices(infos))
		require.False(t, infos[0].Current || infos[1].Current)
	})
}

func TestRevokeEndsOneSession(t *testing.T) {
	s := newSite(t, session.Options{})
	phone, laptop, bob := s.bind(t, "", "ada", "phone"), s.bind(t, "", "ada", "laptop"), s.bind(t, "", "bob", "desk")
	bobs := must(s.m.List(t.Context(), "bob"))
	s.do(t, laptop, func(_ context.Context, v session.Session) {
		for _, i := range must(v.List()) {
			if i.Current {
				continue
			}
			require.NoError(t, v.Revoke(i.ID))
			require.NoError(t, v.Revoke(i.ID), "it has already ended")
		}
		require.NoError(t, v.Revoke(bobs[0].ID), "not this user's")
	})
	require.Empty(t, s.bound(t, phone))
	require.Equal(t, "ada", s.bound(t, laptop))
	require.Equal(t, "bob", s.bound(t, bob))
	require.NoError(t, s.m.Revoke(t.Context(), "bob", bobs[0].ID))
	require.Empty(t, s.bound(t, bob))
	after := s.do(t, laptop, func(_ context.Context, v session.Session) {
		require.NoError(t, v.Revoke(must(v.List())[0].ID), "its own")
	})
	require.Contains(t, after.Get("Set-Cookie"), "Max-Age=0")
	require.Empty(t, s.bound(t, laptop))
}

func TestRevokeOthersLeavesOnlyThisOne(t *testing.T) {
	s := newSite(t, session.Options{})
	others := []string{s.bind(t, "", "ada", "1"), s.bind(t, "", "ada", "2")}
	mine, bob := s.bind(t, "", "ada", "mine"), s.bind(t, "", "bob", "desk")
	h := s.do(t, mine, func(_ context.Context, v session.Session) { require.Equal(t, 2, must(v.RevokeOthers())) })
	require.Empty(t, h["Set-Cookie"])
	for _, cookie := range others {
		require.Empty(t, s.bound(t, cookie))
	}
	require.Equal(t, "ada", s.bound(t, mine))
	require.Equal(t, "bob", s.bound(t, bob))

	// A login can end the other sessions before its own session is saved.
	for _, cookie := range []string{"", s.login(t, "guest")} {
		fresh := cookieOf(t, s.do(t, cookie, func(_ context.Context, v session.Session) {
			require.NoError(t, v.Bind("ada"))
			require.Equal(t, 1, must(v.RevokeOthers()))
		}))
		require.Empty(t, s.bound(t, mine))
		require.Equal(t, "ada", s.bound(t, fresh))
		mine = fresh
	}
}

func TestRevokeAllEndsThisOneToo(t *testing.T) {
	s := newSite(t, session.Options{})
	phone, mine := s.bind(t, "", "ada", "phone"), s.bind(t, "", "ada", "mine")
	h := s.do(t, mine, func(_ context.Context, v session.Session) {
		require.NoError(t, v.Set("a", 1))
		require.Equal(t, 2, must(v.RevokeAll()))
		require.Empty(t, must(v.User()))
	})
	require.Contains(t, h.Get("Set-Cookie"), "Max-Age=0")
	require.Empty(t, s.bound(t, phone))
	require.Empty(t, s.bound(t, mine))
}

// TestEndedSessionCannotRevoke has a thief whose request began before the owner revoked or renewed the stolen session.
// The request must not end the owner's sessions, even if its old secret can still read.
func TestEndedSessionCannotRevoke(t *testing.T) {
	for name, end := range map[string]func(s *site, stolen, mine string) error{
		"revoked": func(s *site, _, mine string) (err error) {
			s.do(t, mine, func(_ context.Context, v session.Session) { _, err = v.RevokeOthers() })
			return err
		},
		"renewed": func(s *site, stolen, _ string) error { s.do(t, stolen, renew); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, session.Options{})
			stolen, mine := s.bind(t, "", "ada", "stolen"), s.bind(t, "", "ada", "mine")
			infos := must(s.m.List(t.Context(), "ada"))
			thief := from(t, s.begin(t, stolen))
			must(thief.User())
			require.NoError(t, end(s, stolen, mine))
			_, othersErr := thief.RevokeOthers()
			_, allErr := thief.RevokeAll()
			for _, err := range []error{othersErr, allErr, thief.Revoke(infos[0].ID), thief.Revoke(infos[1].ID)} {
				require.ErrorIs(t, err, session.ErrGone)
				requireStatus(t, err, http.StatusConflict)
			}
			require.Equal(t, "ada", s.bound(t, mine))
		})
	}
}

func TestSessionWithoutUserHasNoOthers(t *testing.T) {
	s := newSite(t, session.Options{})
	for _, cookie := range []string{"", s.login(t, "ada")} {
		s.do(t, cookie, func(_ context.Context, v session.Session) {
			_, listErr := v.List()
			_, othersErr := v.RevokeOthers()
			_, allErr := v.RevokeAll()
			for _, err := range []error{listErr, othersErr, allErr, v.Revoke("x")} {
				require.ErrorIs(t, err, session.ErrNotBound)
			}
		})
	}
	_, listErr := s.m.List(t.Context(), "")
	_, allErr := s.m.RevokeAll(t.Context(), "")
	for _, err := range []error{listErr, allErr, s.m.Revoke(t.Context(), "", "x")} {
		require.ErrorIs(t, err, session.ErrNotBound)
	}
}

func TestUserMethodsReturnTheStoresError(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.bind(t, "", "ada", "phone")
	v := from(t, s.begin(t, cookie))
	must(v.User())
	s.store.onUser = down
	_, listErr := v.List()
	_, othersErr := v.RevokeOthers()
	_, allErr := v.RevokeAll()
	_, adminErr := s.m.RevokeAll(t.Context(), "ada")
	errs := []error{listErr, othersErr, allErr, adminErr, s.m.Revoke(t.Context(), "ada", "x")}
	s.store.onUser, s.store.onLoad = nil, down
	_, othersErr = v.RevokeOthers()
	for _, err := range append(errs, othersErr) {
		require.ErrorIs(t, err, errDown)
		requireStatus(t, err, http.StatusServiceUnavailable)
	}
	s.store.onLoad = nil
	require.Equal(t, "ada", s.bound(t, cookie))
}

func TestRequireUser(t *testing.T) {
	s := newSite(t, session.Options{})
	for _, cookie := range []string{"", s.login(t, "ada")} {
		user, err := session.RequireUser(s.begin(t, cookie))
		require.ErrorIs(t, err, session.ErrNotBound)
		require.Empty(t, user)
		requireStatus(t, err, http.StatusUnauthorized)
	}
	cookie := s.bind(t, "", "ada", "phone")
	require.Equal(t, "ada", must(session.RequireUser(s.begin(t, cookie))))
	s.store.onLoad = down
	_, err := session.RequireUser(s.begin(t, cookie))
	require.ErrorIs(t, err, errDown, "a store that is down is no reason to log in again")
	_, err = session.RequireUser(t.Context())
	require.ErrorIs(t, err, reqctx.ErrNoRequest)
}

func TestInfoMarshals(t *testing.T) {
	s := newSite(t, session.Options{})
	s.bind(t, "", "ada", "phone")
	infos := must(s.m.List(t.Context(), "ada"))
	text := string(must(json.Marshal(infos)))
	require.JSONEq(t, fmt.Sprintf(`[{"id": %q, "created": %q, "used": %q, "current": false}]`,
		infos[0].ID, infos[0].Created.Format(time.RFC3339Nano), infos[0].Used.Format(time.RFC3339Nano)), text)
	require.NotContains(t, text+fmt.Sprintf("%v %+v %#v", infos[0], infos[0], infos[0]), "phone")
}
