package session_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/storage"
)

func TestDestroyEndsTheSession(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	h := s.do(t, cookie, func(ctx context.Context, v session.Session) {
		require.NoError(t, v.Set("a", 1))
		require.NoError(t, v.Renew())
		require.NoError(t, v.Destroy())
		require.EqualValues(t, 1, s.store.destroys.Load(), "destroyed at once")
		require.False(t, must(v.Exists()))
		require.Nil(t, must(v.Get("user")))
	})
	require.Equal(t, []string{"__Host-session=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax"}, h["Set-Cookie"])
	require.Equal(t, "private", h.Get("Cache-Control"))
	require.Empty(t, s.user(t, cookie))
}

func TestDestroyWithoutSession(t *testing.T) {
	s := newSite(t, session.Options{})
	destroy := func(_ context.Context, v session.Session) { require.NoError(t, v.Destroy()) }
	require.Empty(t, s.do(t, "", destroy)["Set-Cookie"], "there is no cookie to expire")
	require.Len(t, s.do(t, "__Host-session=stale", destroy)["Set-Cookie"], 1)
	require.Zero(t, s.store.destroys.Load())
}

func TestWriteAfterDestroyMakesANewSession(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	h := s.do(t, cookie, func(ctx context.Context, v session.Session) {
		require.NoError(t, v.Set("old", 1))
		require.NoError(t, v.Destroy())
		require.NoError(t, v.Set("user", "bob"))
	})
	fresh := cookieOf(t, h)
	require.NotEqual(t, cookie[:38], fresh[:38])
	require.Equal(t, "bob", s.user(t, fresh))
	require.Empty(t, s.user(t, cookie))
	s.do(t, fresh, func(_ context.Context, v session.Session) {
		require.Nil(t, must(v.Get("old")))
	})
}

func TestBindToAnotherUserBeginsEmpty(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	fresh := cookieOf(t, s.do(t, cookie, func(ctx context.Context, v session.Session) {
		require.NoError(t, v.Set("cart", "of ada"))
		require.ErrorIs(t, v.Bind(strings.Repeat("b", 1<<20)), session.ErrTooLarge)
		require.NoError(t, v.Bind("ada"), "her values stay")
		require.Equal(t, "of ada", must(v.Get("cart")))
		s.store.onDestroy = down
		require.ErrorIs(t, v.Bind("bob"), errDown)
		s.store.onDestroy = nil
		require.NoError(t, v.Bind("bob"))
		require.Nil(t, must(v.Get("cart")))
		require.NoError(t, userField.Set(ctx, "bob's"))
	}))
	require.Equal(t, "bob's", s.user(t, fresh))
	require.Equal(t, "bob", s.bound(t, fresh))
	require.Empty(t, s.user(t, cookie), "the session of ada is gone")
}

func TestDestroyDiscardsABindAndARenew(t *testing.T) {
	s := newSite(t, session.Options{})
	for _, cookie := range []string{"", s.login(t, "ada")} {
		before := s.store.calls()[1]
		s.do(t, cookie, func(_ context.Context, v session.Session) {
			require.NoError(t, v.Bind("ada"))
			require.NoError(t, v.Renew())
			require.NoError(t, v.Destroy())
			require.Empty(t, must(v.User()))
			require.False(t, must(v.Exists()))
		})
		require.Equal(t, before, s.store.calls()[1], "nothing is saved")
	}
}

// destroyingStore is a store that calls destroy at the end of each Commit.
type destroyingStore struct {
	session.Store
	destroy func() error
}

func (s *destroyingStore) Commit(ctx context.Context, d storage.Delta) error {
	return errors.Join(s.Store.Commit(ctx, d), s.destroy())
}

// TestUpdateDuringDestroyDoesNotReachTheNextSession destroys the session while the same request updates a field.
func TestUpdateDuringDestroyDoesNotReachTheNextSession(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	s.setBalance(t, cookie, 40)
	memory := s.store.Store
	fresh := cookieOf(t, s.do(t, cookie, func(ctx context.Context, v session.Session) {
		s.store.Store = &destroyingStore{memory, v.Destroy}
		require.NoError(t, balance.Update(ctx, plus(2)))
		s.store.Store = memory
		require.Zero(t, must(balance.Get(ctx)))
		require.NoError(t, balance.Update(ctx, plus(1)))
	}))
	require.Equal(t, 1, s.balance(t, fresh))
}
