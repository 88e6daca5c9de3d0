package session_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
)

func TestLoginBeyondTheMaximumEndsTheOldestSession(t *testing.T) {
	s := newSite(t, session.Options{MaxPerUser: 2})
	phone := s.bind(t, "", "ada", "phone")
	laptop, bob := s.bind(t, "", "ada", "laptop"), s.bind(t, "", "bob", "desk")
	slow := s.begin(t, phone) // has loaded the session when it ends
	require.NoError(t, userField.Set(slow, "late"))
	loads := s.store.loads.Load()
	tablet := s.bind(t, "", "ada", "tablet")
	require.Equal(t, loads, s.store.loads.Load(), "the login is one call")
	_, err := s.end(t, slow)
	require.ErrorIs(t, err, session.ErrGone)
	require.Empty(t, s.bound(t, phone))
	require.Equal(t, "ada", s.bound(t, laptop))
	require.Equal(t, "ada", s.bound(t, tablet))
	require.Equal(t, "bob", s.bound(t, bob))

	laptop = s.bind(t, laptop, "ada", "laptop") // logs in again
	require.Len(t, must(s.m.List(t.Context(), "ada")), 2)
	phone = s.bind(t, s.login(t, "guest"), "ada", "phone")
	require.Empty(t, s.bound(t, tablet))
	require.Equal(t, "ada", s.bound(t, laptop))
	s.do(t, phone, func(_ context.Context, v session.Session) { require.NoError(t, v.Renew()) }) // does not count as a login
	require.Equal(t, "ada", s.bound(t, laptop))
}

func TestNoMaximumByDefault(t *testing.T) {
	s := newSite(t, session.Options{})
	for range 20 {
		s.bind(t, "", "ada", "phone")
	}
	require.Len(t, must(s.m.List(t.Context(), "ada")), 20)
}
