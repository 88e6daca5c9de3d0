package session_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
)

func renew(_ context.Context, v session.Session) {
	if err := v.Renew(); err != nil {
		panic(err)
	}
}

func TestRenewReplacesTheSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, session.Options{})
		old := s.login(t, "ada")
		h := s.do(t, old, renew)
		renewed := cookieOf(t, h)
		require.NotEqual(t, old, renewed)
		require.Equal(t, old[:38], renewed[:38], "one key, the same locator")
		require.Equal(t, "private", h.Get("Cache-Control"))
		require.Equal(t, "ada", s.user(t, renewed))

		pass(10*time.Second - 1)
		require.Equal(t, "ada", s.user(t, old), "a request on its way still reads")
		pass(1)
		require.Empty(t, s.user(t, old), "the grace is over")
		require.Equal(t, "ada", s.user(t, renewed))
	})
}

// TestRenewTogetherWithAWriteGivesNoGrace checks that the old cookie cannot read what the renewing request has written.
// Otherwise, an attacker who has planted a cookie could read the values of the victim's login.
func TestRenewTogetherWithAWriteGivesNoGrace(t *testing.T) {
	for name, write := range map[string]func(ctx context.Context, v session.Session) error{
		"Set":    func(_ context.Context, v session.Session) error { return v.Set("role", "admin") },
		"Add":    func(ctx context.Context, _ session.Session) error { return visits.Add(ctx, 1) },
		"Delete": func(_ context.Context, v session.Session) error { return v.Delete("guest") },
		"Bind":   func(_ context.Context, v session.Session) error { return v.Bind("ada") },
		"Update": func(ctx context.Context, _ session.Session) error {
			return userField.Update(ctx, func(string) (string, error) { return "ada", nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, session.Options{})
			planted := s.login(t, "ada")
			renewed := cookieOf(t, s.do(t, planted, func(ctx context.Context, v session.Session) {
				require.NoError(t, v.Renew())
				require.NoError(t, write(ctx, v))
			}))
			require.Empty(t, s.user(t, planted))
			require.Equal(t, "ada", s.user(t, renewed))
		})
	}
}

func TestOldSecretReadsAndNeverWrites(t *testing.T) {
	s := newSite(t, session.Options{})
	old := s.login(t, "ada")
	notice := session.NewFlash[string]("notice")
	s.do(t, old, func(ctx context.Context, _ session.Session) { require.NoError(t, notice.Set(ctx, "hello")) })
	renewed := cookieOf(t, s.do(t, old, renew))

	h := s.do(t, old, func(ctx context.Context, v session.Session) {
		require.Equal(t, "ada", must(v.Get("user")))
		before := s.store.calls()
		for name, err := range callWriters(ctx, v) {
			require.ErrorIs(t, err, session.ErrGone, name)
			requireStatus(t, err, http.StatusConflict)
		}
		_, ok, err := notice.Take(ctx)
		require.NoError(t, err)
		require.False(t, ok, "the flash is for a request that may remove it")
		require.Equal(t, before, s.store.calls(), "the store is not even asked")
	})
	require.Empty(t, h["Set-Cookie"], "the renewed cookie stays")
	s.do(t, renewed, func(ctx context.Context, v session.Session) {
		require.Equal(t, "ada", must(v.Get("user")))
		got, ok, err := notice.Take(ctx)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "hello", got)
	})
}
