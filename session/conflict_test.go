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

func TestConcurrentRequestsKeepEachOthersFields(t *testing.T) {
	const n = 1000
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	field := func(i int) session.Field[int] { return session.NewField[int](fmt.Sprint("f", i)) }
	for _, err := range meet(t, s, cookie, n, func(ctx context.Context, i int) error { return field(i).Set(ctx, i) }) {
		require.NoError(t, err)
	}
	s.do(t, cookie, func(ctx context.Context, _ session.Session) {
		for i := range n {
			require.Equal(t, i, must(field(i).Get(ctx)))
		}
	})
	require.Equal(t, "ada", s.user(t, cookie))
}

// A slow request has loaded the session before another request ends or renews it. The slow request does not bring the
// session back, and does not change the cookie of the other request.
func TestSlowRequest(t *testing.T) {
	read := func(v session.Session) error {
		user, err := v.Get("user")
		require.Equal(t, "ada", user, "a request sees one snapshot")
		return err
	}
	write := func(v session.Session) error { return v.Set("late", true) }
	destroy, renew := session.Session.Destroy, session.Session.Renew
	for name, tt := range map[string]struct {
		other, slow func(session.Session) error
		want        error
		cookies     int
	}{
		"writes a destroyed session":   {destroy, write, session.ErrGone, 0},
		"writes a renewed session":     {renew, write, session.ErrGone, 0},
		"reads a destroyed session":    {destroy, read, nil, 0},
		"destroys a destroyed session": {destroy, destroy, nil, 1},
		"destroys a renewed session":   {renew, destroy, session.ErrGone, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, session.Options{})
			cookie := s.login(t, "ada")
			slow := s.begin(t, cookie)
			must(from(t, slow).Exists())
			ended := s.do(t, cookie, func(_ context.Context, v session.Session) { require.NoError(t, tt.other(v)) })

			err := tt.slow(from(t, slow))
			h, commitErr := s.end(t, slow)
			err = errors.Join(err, commitErr)
			if require.ErrorIs(t, err, tt.want); err != nil {
				requireStatus(t, err, http.StatusConflict)
				require.Empty(t, h["Cache-Control"])
			}
			require.Len(t, h["Set-Cookie"], tt.cookies)
			if strings.Contains(name, "renewed") {
				s.do(t, cookieOf(t, ended), func(_ context.Context, v session.Session) {
					require.Nil(t, must(v.Get("late")))
					require.NoError(t, read(v))
				})
				return
			}
			require.Empty(t, s.user(t, cookie))
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

// TestNoLockIsHeldOverStoreCalls has store calls that wait for another method of the session. A lock that is held
// during a store call would be a deadlock.
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
