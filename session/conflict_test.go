package session_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
)

// TestSlowRequest checks a request that loads the session before another request ends or renews it. The slow request
// must not bring the session back, and must not change the cookie that the other request has set.
func TestSlowRequest(t *testing.T) {
	type method = func(ctx context.Context, v session.Session) error
	destroy := func(_ context.Context, v session.Session) error { return v.Destroy() }
	renew := func(_ context.Context, v session.Session) error { return v.Renew() }
	revoke := func(_ context.Context, v session.Session) error { _, err := v.RevokeAll(); return err }
	read := func(_ context.Context, v session.Session) error {
		require.Equal(t, "ada", must(v.Get("user")), "a request sees one snapshot")
		return nil
	}
	writes := map[string]method{
		"Set":    func(_ context.Context, v session.Session) error { return v.Set("late", true) },
		"Add":    func(ctx context.Context, _ session.Session) error { return visits.Add(ctx, 1) },
		"Renew":  renew,
		"Bind":   func(_ context.Context, v session.Session) error { return v.Bind("ada") },
		"Update": func(ctx context.Context, _ session.Session) error { return balance.Update(ctx, plus(1)) },
	}
	for name, other := range map[string]method{"destroyed": destroy, "renewed": renew, "revoked": revoke} {
		check := func(t *testing.T, slow method, want error, cookies int) {
			t.Helper()
			s := newSite(t, session.Options{})
			cookie := s.bind(t, s.login(t, "ada"), "ada", "phone")
			c := s.begin(t, cookie)
			must(from(t, c).Exists())
			ended := s.do(t, cookie, func(ctx context.Context, v session.Session) { require.NoError(t, other(ctx, v)) })

			err := slow(c, from(t, c))
			h, commitErr := s.end(t, c)
			if err = errors.Join(err, commitErr); want != nil {
				requireStatus(t, err, http.StatusConflict)
				require.Empty(t, h["Cache-Control"])
			}
			require.ErrorIs(t, err, want)
			require.Len(t, h["Set-Cookie"], cookies)
			if name != "renewed" {
				require.Empty(t, s.user(t, cookie))
				require.Empty(t, must(s.m.List(t.Context(), "ada")))
				return
			}
			s.do(t, cookieOf(t, ended), func(ctx context.Context, v session.Session) {
				require.Nil(t, must(v.Get("late")))
				require.NoError(t, read(ctx, v))
			})
		}
		t.Run(name, func(t *testing.T) {
			for _, write := range writes {
				check(t, write, session.ErrGone, 0)
			}
			check(t, read, nil, 0)
			if name == "renewed" {
				check(t, destroy, session.ErrGone, 0)
			} else {
				check(t, destroy, nil, 1)
			}
		})
	}
}

func TestConcurrentUseOfOneSession(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	c := s.begin(t, cookie)
	v := from(t, c)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			name := fmt.Sprint("f", i)
			err := errors.Join(v.Set(name, i), v.Renew(), v.Delete("absent"), userField.Set(c, strings.Repeat("x", i)))
			_, err2 := v.Get(name)
			_, err3 := v.Exists()
			if err := errors.Join(err, err2, err3); err != nil {
				t.Error(err)
			}
			_ = fmt.Sprint(v)
		})
	}
	wg.Wait()
	h := must(s.end(t, c))
	cookieOf(t, h)
}

// TestNoLockIsHeldOverStoreCalls uses a store whose calls wait for another method of the session. If a lock were held
// during a store call, the test would hang.
func TestNoLockIsHeldOverStoreCalls(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	c := s.begin(t, cookie)
	v := from(t, c)
	require.NoError(t, v.Set("a", 1))
	use := func() error {
		done := make(chan error)
		go func() {
			_, err := v.Get("user")
			_, err2 := v.Exists()
			done <- errors.Join(err, err2)
		}()
		return <-done
	}
	s.store.onDestroy = use
	require.NoError(t, v.Destroy())
	require.NoError(t, v.Set("a", 2))
	s.store.onCommit = use
	h := must(s.end(t, c))
	cookieOf(t, h)
}

func requireStatus(t *testing.T, err error, want int) {
	t.Helper()
	var p interface {
		Problem() (int, map[string]any)
	}
	require.ErrorAs(t, err, &p)
	status, members := p.Problem()
	require.Equal(t, want, status)
	require.NotEmpty(t, members["title"])
}
