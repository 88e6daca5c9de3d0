package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

var device = session.NewField[string]("device")

// bind logs user in on a device and returns the cookie line.
func (s *site) bind(t testing.TB, cookie, user, on string) string {
	t.Helper()
	return cookieOf(t, s.do(t, cookie, func(ctx context.Context, v session.Session) {
		require.NoError(t, v.Bind(user))
		require.NoError(t, device.Set(ctx, on))
	}))
}

// bound returns the user to whom the session of a cookie line is bound.
func (s *site) bound(t testing.TB, cookie string) (user string) {
	t.Helper()
	s.do(t, cookie, func(_ context.Context, v session.Session) {
		var err error
		user, err = v.User()
		require.NoError(t, err)
	})
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
		user, err := v.User()
		require.NoError(t, err)
		require.Equal(t, "ada", user)
		exists, err := v.Exists()
		require.NoError(t, err)
		require.True(t, exists)
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
	require.Equal(t, "guest", s.user(t, mine), "what it held stays")
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
		require.Equal(t, "ada", s.bound(t, phone)) // is used
		s.do(t, laptop, func(_ context.Context, v session.Session) {
			infos, err := v.List()
			require.NoError(t, err)
			require.Equal(t, []string{"laptop", "phone"}, devices(infos))
			require.Equal(t, []bool{true, false}, []bool{infos[0].Current, infos[1].Current})
			require.Equal(t, time.Now().Add(-10*time.Minute).UnixNano(), infos[0].Created.UnixNano())
			require.Equal(t, time.Now().UnixNano(), infos[1].Used.UnixNano())
			require.NotContains(t, laptop, infos[0].ID)
		})
		infos, err := s.m.List(t.Context(), "ada")
		require.NoError(t, err)
		require.Equal(t, []string{"laptop", "phone"}, devices(infos))
		require.False(t, infos[0].Current || infos[1].Current)
		pass(20 * time.Minute)
		require.Equal(t, "ada", s.bound(t, phone))
		for range 2 {
			pass(5 * time.Minute)
			_, err = s.m.List(t.Context(), "ada")
			require.NoError(t, err)
		}
		infos, err = s.m.List(t.Context(), "ada")
		require.NoError(t, err)
		require.Equal(t, []string{"phone"}, devices(infos), "listing is not use")
		require.Empty(t, s.bound(t, laptop))
	})
}

func TestRevokeEndsOneSession(t *testing.T) {
	s := newSite(t, session.Options{})
	phone, laptop, bob := s.bind(t, "", "ada", "phone"), s.bind(t, "", "ada", "laptop"), s.bind(t, "", "bob", "desk")
	bobs, err := s.m.List(t.Context(), "bob")
	require.NoError(t, err)
	s.do(t, laptop, func(_ context.Context, v session.Session) {
		infos, err := v.List()
		require.NoError(t, err)
		for _, i := range infos {
			if i.Current {
				require.ErrorContains(t, v.Revoke(i.ID), "Destroy")
				continue
			}
			require.NoError(t, v.Revoke(i.ID))
			require.NoError(t, v.Revoke(i.ID), "gone already")
		}
		require.NoError(t, v.Revoke(bobs[0].ID), "not hers, and so not there")
	})
	require.Empty(t, s.bound(t, phone))
	require.Equal(t, "ada", s.bound(t, laptop))
	require.Equal(t, "bob", s.bound(t, bob))
	require.NoError(t, s.m.Revoke(t.Context(), "bob", bobs[0].ID))
	require.Empty(t, s.bound(t, bob))
}

func TestRevokeOthersLeavesOnlyThisOne(t *testing.T) {
	s := newSite(t, session.Options{})
	var others []string
	for i := range 3 {
		others = append(others, s.bind(t, "", "ada", fmt.Sprint(i)))
	}
	mine, bob := s.bind(t, "", "ada", "mine"), s.bind(t, "", "bob", "desk")
	h := s.do(t, mine, func(_ context.Context, v session.Session) {
		n, err := v.RevokeOthers()
		require.NoError(t, err)
		require.Equal(t, 3, n)
	})
	require.Empty(t, h["Set-Cookie"])
	for _, cookie := range others {
		require.Empty(t, s.bound(t, cookie))
	}
	require.Equal(t, "ada", s.bound(t, mine))
	require.Equal(t, "bob", s.bound(t, bob))
}

// A login that also logs out everywhere else, before its own session is saved.
func TestRevokeOthersAtTheLogin(t *testing.T) {
	s := newSite(t, session.Options{})
	old := s.bind(t, "", "ada", "phone")
	for _, cookie := range []string{"", s.login(t, "guest")} {
		fresh := cookieOf(t, s.do(t, cookie, func(_ context.Context, v session.Session) {
			require.NoError(t, v.Bind("ada"))
			n, err := v.RevokeOthers()
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}))
		require.Empty(t, s.bound(t, old))
		require.Equal(t, "ada", s.bound(t, fresh))
		old = fresh
	}
}

func TestRevokeAllEndsThisOneToo(t *testing.T) {
	s := newSite(t, session.Options{})
	phone, mine := s.bind(t, "", "ada", "phone"), s.bind(t, "", "ada", "mine")
	h := s.do(t, mine, func(_ context.Context, v session.Session) {
		require.NoError(t, v.Set("a", 1))
		n, err := v.RevokeAll()
		require.NoError(t, err)
		require.Equal(t, 2, n)
		user, err := v.User()
		require.NoError(t, err)
		require.Empty(t, user)
	})
	require.Contains(t, h.Get("Set-Cookie"), "Max-Age=0")
	require.Empty(t, s.bound(t, phone))
	require.Empty(t, s.bound(t, mine))
}

// A request that loaded a session before it was revoked cannot bring it back.
func TestRevokedSessionStaysRevoked(t *testing.T) {
	for name, write := range map[string]func(ctx context.Context, v session.Session) error{
		"Set":    func(_ context.Context, v session.Session) error { return v.Set("late", true) },
		"Add":    func(_ context.Context, v session.Session) error { return v.Add("late", 1) },
		"Renew":  func(_ context.Context, v session.Session) error { return v.Renew() },
		"Bind":   func(_ context.Context, v session.Session) error { return v.Bind("ada") },
		"Update": func(ctx context.Context, _ session.Session) error { return balance.Update(ctx, plus(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, session.Options{})
			stolen := s.bind(t, "", "ada", "stolen")
			slow := s.begin(t, stolen)
			_, err := from(t, slow).Get("user")
			require.NoError(t, err)
			n, err := s.m.RevokeAll(t.Context(), "ada")
			require.NoError(t, err)
			require.Equal(t, 1, n)
			err = write(slow, from(t, slow))
			h, commitErr := s.end(t, slow)
			if err == nil {
				err = commitErr
			}
			require.ErrorIs(t, err, session.ErrGone)
			require.Empty(t, h["Set-Cookie"])
			require.Empty(t, s.bound(t, stolen))
			infos, err := s.m.List(t.Context(), "ada")
			require.NoError(t, err)
			require.Empty(t, infos)
		})
	}
}

// The thief's request began before the owner revoked its session; it must not revoke
// the owner's afterwards.
func TestRevokedSessionCannotRevoke(t *testing.T) {
	s := newSite(t, session.Options{})
	stolen, mine := s.bind(t, "", "ada", "stolen"), s.bind(t, "", "ada", "mine")
	infos, err := s.m.List(t.Context(), "ada")
	require.NoError(t, err)
	slow := s.begin(t, stolen)
	thief := from(t, slow)
	_, err = thief.User()
	require.NoError(t, err)
	s.do(t, mine, func(_ context.Context, v session.Session) {
		_, err := v.RevokeOthers()
		require.NoError(t, err)
	})
	_, err = thief.RevokeOthers()
	require.ErrorIs(t, err, session.ErrGone)
	requireStatus(t, err, http.StatusConflict)
	_, err = thief.RevokeAll()
	require.ErrorIs(t, err, session.ErrGone)
	for _, i := range infos {
		require.ErrorIs(t, thief.Revoke(i.ID), session.ErrGone)
	}
	require.Equal(t, "ada", s.bound(t, mine))
}

// The old secret may still read: that is not enough to end others.
func TestRenewedSecretCannotRevoke(t *testing.T) {
	s := newSite(t, session.Options{})
	bind := func(_ context.Context, v session.Session) { require.NoError(t, v.Bind("ada")) }
	cookie, other := cookieOf(t, s.do(t, "", bind)), cookieOf(t, s.do(t, "", bind))
	c := s.begin(t, cookie)
	v := from(t, c)
	_, err := v.User()
	require.NoError(t, err)
	s.do(t, cookie, func(_ context.Context, v session.Session) { require.NoError(t, v.Renew()) })
	_, err = v.RevokeOthers()
	require.ErrorIs(t, err, session.ErrGone)
	_, err = v.RevokeAll()
	require.ErrorIs(t, err, session.ErrGone)
	s.do(t, other, func(_ context.Context, v session.Session) {
		infos, err := v.List()
		require.NoError(t, err)
		require.Len(t, infos, 2)
	})
}

func TestSessionWithoutUserHasNoOthers(t *testing.T) {
	s := newSite(t, session.Options{})
	for _, cookie := range []string{"", s.login(t, "ada")} {
		s.do(t, cookie, func(_ context.Context, v session.Session) {
			_, err := v.List()
			require.ErrorIs(t, err, session.ErrNotBound)
			_, err = v.RevokeOthers()
			require.ErrorIs(t, err, session.ErrNotBound)
			_, err = v.RevokeAll()
			require.ErrorIs(t, err, session.ErrNotBound)
			require.ErrorIs(t, v.Revoke("x"), session.ErrNotBound)
		})
	}
	_, err := s.m.List(t.Context(), "")
	require.ErrorIs(t, err, session.ErrNotBound)
	_, err = s.m.RevokeAll(t.Context(), "")
	require.ErrorIs(t, err, session.ErrNotBound)
	require.ErrorIs(t, s.m.Revoke(t.Context(), "", "x"), session.ErrNotBound)
}

func TestUserMethodsReturnTheStoresError(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.bind(t, "", "ada", "phone")
	infos, err := s.m.List(t.Context(), "ada")
	require.NoError(t, err)
	c := s.begin(t, cookie)
	v := from(t, c)
	_, err = v.User()
	require.NoError(t, err)
	s.store.onUser = down
	_, listErr := v.List()
	_, othersErr := v.RevokeOthers()
	_, allErr := v.RevokeAll()
	_, adminErr := s.m.RevokeAll(t.Context(), "ada")
	errs := []error{listErr, othersErr, allErr, adminErr, s.m.Revoke(t.Context(), "ada", infos[0].ID)}
	s.store.onUser, s.store.onLoad = nil, down
	_, othersErr = v.RevokeOthers()
	for _, err := range slices.Concat(errs, []error{othersErr}) {
		require.ErrorIs(t, err, errDown)
		requireStatus(t, err, http.StatusServiceUnavailable)
	}
	s.store.onLoad = nil
	require.Equal(t, "ada", s.bound(t, cookie))
}

func TestRequireUser(t *testing.T) {
	s := newSite(t, session.Options{})
	for _, cookie := range []string{"", s.login(t, "ada")} {
		c := s.begin(t, cookie)
		user, err := session.RequireUser(c)
		require.ErrorIs(t, err, session.ErrNotBound)
		require.Empty(t, user)
		requireStatus(t, err, http.StatusUnauthorized)
	}
	c := s.begin(t, s.bind(t, "", "ada", "phone"))
	user, err := session.RequireUser(c)
	require.NoError(t, err)
	require.Equal(t, "ada", user)

	s.store.onLoad = down
	_, err = session.RequireUser(s.begin(t, s.bind(t, "", "ada", "laptop")))
	require.ErrorIs(t, err, errDown, "a store that is down is no reason to log in again")
	_, err = session.RequireUser(t.Context())
	require.ErrorIs(t, err, reqctx.ErrNoRequest)
}

// The JSON of an Info is its exported fields, without what the session holds.
func TestInfoMarshals(t *testing.T) {
	s := newSite(t, session.Options{})
	s.bind(t, "", "ada", "phone")
	infos, err := s.m.List(t.Context(), "ada")
	require.NoError(t, err)
	require.Len(t, infos, 1)
	text, err := json.Marshal(infos[0])
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, map[string]any{
		"id": infos[0].ID, "created": infos[0].Created.Format(time.RFC3339Nano),
		"used": infos[0].Used.Format(time.RFC3339Nano), "current": false,
	}, got)
	require.NotContains(t, string(text)+fmt.Sprintf("%v %+v %#v", infos[0], infos[0], infos[0]), "phone")
}
