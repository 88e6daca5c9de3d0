package session_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
)

func TestIDNamesTheSession(t *testing.T) {
	s := newSite(t, session.Options{})
	id := func(cookie string, use func(v session.Session)) (got string) {
		h := s.do(t, cookie, func(_ context.Context, v session.Session) {
			if use != nil {
				use(v)
			}
			var err error
			got, err = v.ID()
			require.NoError(t, err)
		})
		if use == nil {
			require.Empty(t, h.Get("Set-Cookie"), "asking makes no session")
		}
		return got
	}
	require.Empty(t, id("", nil))
	require.Empty(t, id("", func(v session.Session) { require.NoError(t, v.Set("user", "ada")) }), "not saved yet")

	ada, bob := s.login(t, "ada"), s.login(t, "bob")
	known := id(ada, nil)
	require.Len(t, known, 16)
	require.NotContains(t, ada, known)
	require.Equal(t, known, id(ada, nil))
	require.NotEqual(t, known, id(bob, nil))

	h := s.do(t, ada, func(_ context.Context, v session.Session) { require.NoError(t, v.Renew()) })
	require.Equal(t, known, id(cookieOf(t, h), nil), "a new secret, the same session")
	require.Empty(t, id(bob, func(v session.Session) { require.NoError(t, v.Destroy()) }))
	require.Empty(t, id(bob, nil))
}
