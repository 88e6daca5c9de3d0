package session_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
)

const month = 30 * 24 * time.Hour

func remember(_ context.Context, v session.Session) {
	if err := errors.Join(v.Bind("ada"), v.Remember()); err != nil {
		panic(err)
	}
}

func rebind(_ context.Context, v session.Session) {
	if err := v.Bind("ada"); err != nil {
		panic(err)
	}
}

func TestRememberedSessionOutlivesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, session.Options{RememberFor: month})
		plain := s.bind(t, "", "ada", "library")
		visitor := s.login(t, "cart")
		pass(time.Hour / 4)
		h := s.do(t, visitor, remember)
		require.Contains(t, h.Get("Set-Cookie"), "; Max-Age=2591100;", "a quarter of an hour has passed since the creation")
		own := cookieOf(t, h)
		require.Empty(t, s.bound(t, visitor), "the earlier cookie is invalid")

		pass(20 * 24 * time.Hour)
		require.Empty(t, s.bound(t, plain))
		require.Equal(t, "cart", s.user(t, own))
		require.Len(t, must(s.m.List(t.Context(), "ada")), 1)
		h = s.do(t, own, renew)
		require.Contains(t, h.Get("Set-Cookie"), "; Max-Age=863100;")
		h = s.do(t, cookieOf(t, h), rebind)
		require.Contains(t, h.Get("Set-Cookie"), "; Max-Age=863100;", "another login of the user keeps it")
		own = cookieOf(t, h)
		pass(10*24*time.Hour - time.Hour/4 - 1)
		require.Equal(t, "ada", s.bound(t, own))
		pass(1)
		require.Empty(t, s.bound(t, own), "use does not extend it")
	})
}

// TestRememberOptionHoldsForExistingSessions changes RememberFor while a remembered session exists.
func TestRememberOptionHoldsForExistingSessions(t *testing.T) {
	for name, tt := range map[string]struct {
		o    session.Options
		ends time.Duration
	}{
		"off":     {session.Options{}, time.Hour / 2},
		"shorter": {session.Options{RememberFor: month / 2}, month / 2},
		"longer":  {session.Options{RememberFor: 2 * month}, 2 * month},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := newSite(t, session.Options{RememberFor: month})
				cookie := cookieOf(t, before.do(t, "", remember))
				s := newSiteOn(t, before.store, tt.o)
				h := s.do(t, cookie, renew)
				require.Equal(t, tt.o.RememberFor > 0, must(http.ParseSetCookie(h.Get("Set-Cookie"))).MaxAge > 0)
				pass(tt.ends - 1)
				// A request would count as use, so the list tells whether the session exists.
				require.Len(t, must(s.m.List(t.Context(), "ada")), 1)
				pass(1)
				require.Empty(t, s.bound(t, cookieOf(t, h)))
			})
		})
	}
}

func TestRememberIsRefused(t *testing.T) {
	off := newSite(t, session.Options{})
	h := off.do(t, "", func(_ context.Context, v session.Session) {
		require.NoError(t, v.Bind("ada"))
		require.EqualError(t, v.Remember(), "session: Remember: Options.RememberFor is not set")
	})
	require.NotContains(t, h.Get("Set-Cookie"), "Max-Age", "the login itself succeeds")
	require.Equal(t, "ada", off.bound(t, cookieOf(t, h)))

	s := newSite(t, session.Options{RememberFor: month})
	for _, cookie := range []string{"", s.login(t, "cart"), s.bind(t, "", "ada", "phone")} {
		h := s.do(t, cookie, func(_ context.Context, v session.Session) {
			require.EqualError(t, v.Remember(), "session: Remember: the request has not called Bind")
		})
		require.Empty(t, h["Set-Cookie"])
	}
}

// TestNextUserIsNotRemembered checks that a remembered login says nothing about the next user of the browser.
func TestNextUserIsNotRemembered(t *testing.T) {
	s := newSite(t, session.Options{RememberFor: month})
	for name, next := range map[string]func(v session.Session) error{
		"other user":           func(v session.Session) error { return v.Bind("bob") },
		"after a logout":       func(v session.Session) error { return errors.Join(v.Destroy(), v.Bind("ada")) },
		"in the same request":  func(v session.Session) error { return errors.Join(v.Bind("ada"), v.Remember(), v.Bind("bob")) },
		"values after logouts": func(v session.Session) error { return errors.Join(v.Destroy(), v.Set("a", 1)) },
	} {
		h := s.do(t, cookieOf(t, s.do(t, "", remember)), func(_ context.Context, v session.Session) { require.NoError(t, next(v), name) })
		require.NotContains(t, h.Get("Set-Cookie"), "Max-Age", name)
		h = s.do(t, cookieOf(t, h), renew)
		require.NotContains(t, h.Get("Set-Cookie"), "Max-Age", name)
	}
}

func TestRememberWithAHeaderSendsNoCookie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, session.Options{Header: tokenHeader, RememberFor: month})
		token := ask(t, s, nil, remember).Get(tokenHeader)
		pass(month - 1)
		ask(t, s, []string{token}, func(_ context.Context, v session.Session) { require.Equal(t, "ada", must(v.User())) })
	})
}
