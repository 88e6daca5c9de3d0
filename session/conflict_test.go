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
	var wg, loaded sync.WaitGroup
	loaded.Add(n)
	for i := range n {
		c := s.begin(t, cookie)
		wg.Go(func() {
			v, err := session.From(c)
			if err == nil {
				_, err = v.Get("user")
			}
			loaded.Done()
			loaded.Wait() // all have the same snapshot before any of them saves
			if err := errors.Join(err, v.Set(fmt.Sprint("f", i), i), c.Commit(http.StatusOK, http.Header{})); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.do(t, cookie, func(ctx context.Context, v session.Session) {
		for i := range n {
			got, err := v.Get(fmt.Sprint("f", i))
			require.NoError(t, err)
			require.EqualValues(t, i, got)
		}
	})
	require.Equal(t, "ada", s.user(t, cookie))
}

// The slow request loses: its save is a conflict, and touches no cookie, so that
// the one that the other request has set stays.
func TestSlowWriteRevivesNoSession(t *testing.T) {
	for name, end := range map[string]func(session.Session) error{
		"Destroy": session.Session.Destroy,
		"Renew":   session.Session.Renew,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, session.Options{})
			cookie := s.login(t, "ada")
			slow := s.begin(t, cookie)
			require.NoError(t, from(t, slow).Set("late", true))

			ended := s.do(t, cookie, func(_ context.Context, v session.Session) { require.NoError(t, end(v)) })

			h, err := s.end(t, slow)
			require.ErrorIs(t, err, session.ErrGone)
			requireStatus(t, err, http.StatusConflict)
			require.Empty(t, h["Set-Cookie"])
			require.Empty(t, h["Cache-Control"])
			if name == "Destroy" {
				require.Empty(t, s.user(t, cookie), "nothing has come back")
			} else {
				s.do(t, cookieOf(t, ended), func(_ context.Context, v session.Session) {
					late, err := v.Get("late")
					require.NoError(t, err)
					require.Nil(t, late)
				})
			}
		})
	}
}

func TestSlowReadOfAnEndedSessionIsNoError(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	slow := s.begin(t, cookie)
	_, err := from(t, slow).Get("user")
	require.NoError(t, err)
	s.do(t, cookie, func(_ context.Context, v session.Session) { require.NoError(t, v.Destroy()) })
	user, err := from(t, slow).Get("user")
	require.NoError(t, err)
	require.Equal(t, "ada", user, "a request sees one snapshot")
	h, err := s.end(t, slow)
	require.NoError(t, err)
	require.Empty(t, h["Set-Cookie"])
}

func TestSlowDestroyOfADestroyedSessionIsNoError(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	slow := s.begin(t, cookie)
	_, err := from(t, slow).Exists()
	require.NoError(t, err)
	logout := func(_ context.Context, v session.Session) { require.NoError(t, v.Destroy()) }
	s.do(t, cookie, logout)
	require.NoError(t, from(t, slow).Destroy())
	h, err := s.end(t, slow)
	require.NoError(t, err)
	require.Len(t, h["Set-Cookie"], 1)
}

func TestDestroyOfARenewedSessionIsAnError(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	slow := s.begin(t, cookie)
	_, err := from(t, slow).Exists()
	require.NoError(t, err)
	renewed := cookieOf(t, s.do(t, cookie, func(_ context.Context, v session.Session) { require.NoError(t, v.Renew()) }))

	err = from(t, slow).Destroy()
	require.ErrorIs(t, err, session.ErrGone)
	requireStatus(t, err, http.StatusConflict)
	h, err := s.end(t, slow)
	require.NoError(t, err)
	require.Empty(t, h["Set-Cookie"], "the renewed cookie must survive")
	require.Equal(t, "ada", s.user(t, renewed))
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
	h, err := s.end(t, c)
	require.NoError(t, err)
	cookieOf(t, h)
}

// A store call that waits for another method of the session would never end if a
// lock were held over it.
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
	h, err := s.end(t, c)
	require.NoError(t, err)
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
