package sessiontest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/memstore"
	"github.com/lazyreq/lazyreq/session/sessiontest"
)

var name = session.NewField[string]("name")

func newManager(t *testing.T, o session.Options) *session.Manager {
	t.Helper()
	store, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	m, err := session.New(store, o)
	require.NoError(t, err)
	return m
}

func TestRequestGetsASession(t *testing.T) {
	for transport, o := range map[string]session.Options{
		"cookie": {}, "insecure cookie": {Cookie: session.Cookie{Insecure: true}}, "header": {Header: "X-Session-Token"},
		"scheme": {Header: "Authorization", HeaderScheme: "Bearer"},
	} {
		t.Run(transport, func(t *testing.T) {
			m := newManager(t, o)
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.AddCookie(&http.Cookie{Name: "theme", Value: "dark"})
			sessiontest.Do(t, m, r, func(ctx context.Context) error { return name.Set(ctx, "Ada") })
			sessiontest.Login(t, m, r, "42")
			requireSession(t, m, r, "42", "Ada")
			theme, err := r.Cookie("theme")
			require.NoError(t, err)
			require.Equal(t, "dark", theme.Value)
			require.LessOrEqual(t, len(r.Cookies()), 2, "a new token replaces the old one")

			other := httptest.NewRequest(http.MethodGet, "/", nil)
			sessiontest.Login(t, m, other, "43")
			requireSession(t, m, other, "43", "")
			requireSession(t, m, r, "42", "Ada")

			sessiontest.Do(t, m, r, func(ctx context.Context) error {
				s, err := session.From(ctx)
				return errors.Join(err, s.Destroy())
			})
			requireSession(t, m, r, "", "")
			require.LessOrEqual(t, len(r.Cookies()), 1)
		})
	}
}

func requireSession(t *testing.T, m *session.Manager, r *http.Request, user, want string) {
	t.Helper()
	sessiontest.Do(t, m, r, func(ctx context.Context) error {
		s, err := session.From(ctx)
		require.NoError(t, err)
		got, err := s.User()
		require.NoError(t, err)
		require.Equal(t, user, got)
		text, err := name.Get(ctx)
		require.Equal(t, want, text)
		return err
	})
}

// fatal is a testing.TB that records whether Fatalf was called.
type fatal struct {
	testing.TB
	ended bool
}

func (f *fatal) Helper()               {}
func (f *fatal) Fatalf(string, ...any) { f.ended = true; panic(f) }

func TestErrorEndsTheTest(t *testing.T) {
	m := newManager(t, session.Options{})
	f := &fatal{TB: t}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	require.Panics(t, func() { sessiontest.Do(f, m, r, func(context.Context) error { return errors.New("broken") }) })
	require.True(t, f.ended)
	require.Empty(t, r.Cookies())
}
