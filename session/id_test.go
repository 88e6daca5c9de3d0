package session_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
)

func TestIDNamesTheSession(t *testing.T) {
	s := newSite(t, session.Options{})
	id := func(cookie string, use func(v session.Session) error) (got string) {
		s.do(t, cookie, func(_ context.Context, v session.Session) {
			require.NoError(t, use(v))
			var err error
			got, err = v.ID()
			require.NoError(t, err)
		})
		return got
	}
	ask := func(session.Session) error { return nil }
	require.Empty(t, id("", ask))
	require.Empty(t, id("", func(v session.Session) error { return v.Set("user", "ada") }), "not saved yet")

	ada, bob := s.login(t, "ada"), s.login(t, "bob")
	known := id(ada, ask)
	require.Len(t, known, 16)
	require.NotContains(t, ada, known)
	require.NotEqual(t, known, id(bob, ask))
	require.Equal(t, known, id(cookieOf(t, s.do(t, ada, renew)), ask), "a new secret, the same session")
	require.Empty(t, id(bob, session.Session.Destroy))
	require.Empty(t, id(bob, ask))
}
