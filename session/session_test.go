package session_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

func TestUntouchedSessionCostsNothing(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	before := s.store.calls()
	h := s.do(t, cookie, func(context.Context, session.Session) {})
	require.Empty(t, h)
	require.Equal(t, before, s.store.calls())
}

func TestReadingIsOneStoreCallAndNoCookie(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	before := s.store.calls()
	h := s.do(t, cookie, func(ctx context.Context, v session.Session) {
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				user, err := v.Get("user")
				if err != nil || user != "ada" {
					t.Errorf("got %v, %v", user, err)
				}
			})
		}
		wg.Wait()
		require.True(t, must(v.Exists()))
	})
	require.Equal(t, http.Header{"Vary": {"Cookie"}}, h)
	require.Equal(t, [3]int64{before[0] + 1, before[1], 0}, s.store.calls())
}

func TestNoUsableCookieIsAnEmptySession(t *testing.T) {
	s := newSite(t, session.Options{})
	known := s.login(t, "ada")
	unknown := "__Host-session=" + strings.Repeat("A", 22) + "." + strings.Repeat("A", 43)
	forged := known[:len(known)-43] + strings.Repeat("A", 43)
	for name, tt := range map[string]struct {
		cookie string
		loads  int64
	}{
		"none":         {"", 0},
		"other":        {"theme=dark", 0},
		"garbage":      {"__Host-session=garbage", 0},
		"too long":     {known + "A", 0},
		"cut":          {known[:len(known)-1], 0},
		"other name":   {strings.TrimPrefix(known, "__Host-"), 0},
		"unknown":      {unknown, 1},
		"wrong secret": {forged, 1},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.store.calls()
			h := s.do(t, tt.cookie, func(ctx context.Context, v session.Session) {
				require.Nil(t, must(v.Get("user")))
				require.False(t, must(v.Exists()))
				require.NoError(t, v.Delete("user"))
				require.NoError(t, v.Renew())
			})
			require.Equal(t, http.Header{"Vary": {"Cookie"}}, h)
			require.Equal(t, [3]int64{before[0] + tt.loads, before[1], 0}, s.store.calls())
		})
	}
	t.Run("a write makes a session of its own", func(t *testing.T) {
		for _, cookie := range []string{unknown, forged} {
			h := s.do(t, cookie, func(ctx context.Context, v session.Session) {
				require.NoError(t, v.Set("user", "eve"))
			})
			fresh := cookieOf(t, h)
			require.NotEqual(t, cookie[:38], fresh[:38], "the locator comes from the server")
			require.Equal(t, "eve", s.user(t, fresh))
		}
		require.Equal(t, "ada", s.user(t, known))
	})
}

func TestFirstWriteMakesASession(t *testing.T) {
	s := newSite(t, session.Options{})
	h := s.do(t, "", func(ctx context.Context, v session.Session) {
		require.NoError(t, v.Set("gone", 1))
		require.NoError(t, v.Delete("gone"))
		require.Empty(t, s.store.calls(), "nothing to save")
		require.False(t, must(v.Exists()))
		require.NoError(t, v.Set("user", "ada"))
		require.True(t, must(v.Exists()))
	})
	cookie := cookieOf(t, h)
	require.Equal(t, cookie+"; Path=/; HttpOnly; Secure; SameSite=Lax", h.Get("Set-Cookie"))
	require.Equal(t, "private", h.Get("Cache-Control"))
	require.Equal(t, []string{"Cookie"}, h["Vary"])
	require.Equal(t, [3]int64{0, 1, 0}, s.store.calls())
	require.Equal(t, "ada", s.user(t, cookie))
}

func TestChangeIsTwoStoreCallsAndNoCookie(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	before := s.store.calls()
	h := s.do(t, cookie, func(ctx context.Context, v session.Session) {
		require.NoError(t, v.Set("a", 1))
		require.NoError(t, v.Set("b", map[string]any{"c": []int{1, 2}}))
		require.Equal(t, map[string]any{"c": []any{1.0, 2.0}}, must(v.Get("b")), "a request reads its own writes")
	})
	require.Equal(t, http.Header{"Vary": {"Cookie"}}, h)
	require.Equal(t, [3]int64{before[0] + 1, before[1] + 1, 0}, s.store.calls())

	s.do(t, cookie, func(ctx context.Context, v session.Session) {
		require.NoError(t, v.Delete("a"))
		require.Nil(t, must(v.Get("a")))
		require.Equal(t, "ada", must(v.Get("user")))
		require.Empty(t, s.log.String(), "a deleted field is no broken one")
	})
	s.do(t, cookie, func(ctx context.Context, v session.Session) {
		require.Nil(t, must(v.Get("a")))
	})
}

func TestBadWritesAreRefused(t *testing.T) {
	s := newSite(t, session.Options{})
	h := s.do(t, "", func(ctx context.Context, v session.Session) {
		require.ErrorContains(t, v.Set("callback", func() {}), `session: field "callback"`)
		require.Error(t, v.Set("", 1))
		require.Error(t, v.Delete(""))
		require.Error(t, reqctx.Set(ctx, "session", v))
	})
	require.Empty(t, h["Set-Cookie"])
}

func TestFromWithoutProvide(t *testing.T) {
	_, err := session.From(reqctx.New(t.Context(), reqctx.NewRegistry(reqctx.Options{})))
	require.ErrorContains(t, err, `"session"`)
	require.Panics(t, func() { session.Provide(reqctx.NewRegistry(reqctx.Options{}), nil) })
}

func TestContextWithoutRequest(t *testing.T) {
	s := newSite(t, session.Options{})
	c := reqctx.New(t.Context(), s.reg)
	require.NoError(t, from(t, c).Set("user", "ada"))
	h := must(s.end(t, c))
	require.Equal(t, "ada", s.user(t, cookieOf(t, h)))
}
