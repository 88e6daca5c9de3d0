package session_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
)

func TestUseIsRecordedAfterATenthOfTheIdleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, session.Options{IdleTimeout: 10 * time.Minute})
		early, due := s.login(t, "ada"), s.login(t, "bob")
		pass(time.Minute - time.Nanosecond)
		require.Equal(t, "ada", s.user(t, early))
		pass(time.Nanosecond)
		require.Equal(t, "bob", s.user(t, due))
		pass(9 * time.Minute)
		require.Empty(t, s.user(t, early))
		require.Equal(t, "bob", s.user(t, due))
		pass(6 * time.Minute)
		shorter := newSiteOn(t, s.store, session.Options{IdleTimeout: 5 * time.Minute})
		require.Empty(t, shorter.user(t, due), "shorter limits hold for existing sessions")
	})
}

func TestLongestTimeoutsAreForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, session.Options{
			Cookie: session.Cookie{Persistent: true}, IdleTimeout: math.MaxInt64, AbsoluteTimeout: math.MaxInt64,
		})
		h := s.do(t, "", func(_ context.Context, v session.Session) { require.NoError(t, v.Bind("ada")) })
		require.Contains(t, h.Get("Set-Cookie"), "; Max-Age=2147483647;")
		pass(100 * 365 * 24 * time.Hour)
		s.do(t, cookieOf(t, h), func(_ context.Context, v session.Session) {
			require.Equal(t, "ada", must(v.User()))
		})
	})
}

func TestPersistentCookieLivesForTheAbsoluteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, session.Options{Cookie: session.Cookie{Persistent: true}, IdleTimeout: time.Hour, AbsoluteTimeout: time.Hour})
		h := s.do(t, "", func(_ context.Context, v session.Session) { require.NoError(t, v.Set("a", 1)) })
		require.Contains(t, h.Get("Set-Cookie"), "; Max-Age=3600;")
		pass(20*time.Minute + time.Second/2)
		h = s.do(t, cookieOf(t, h), func(_ context.Context, v session.Session) { require.NoError(t, v.Renew()) })
		require.Contains(t, h.Get("Set-Cookie"), "; Max-Age=2400;", "Renew doesn't extend it")
		require.Equal(t, 1, strings.Count(h.Get("Set-Cookie"), "Max-Age"))
	})
}
