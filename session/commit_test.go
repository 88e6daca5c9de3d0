package session_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

func TestWriteAfterCommitIsRefused(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	for _, loaded := range []bool{true, false} {
		c := s.begin(t, cookie)
		v := from(t, c)
		if loaded {
			must(v.Get("user"))
		}
		require.NoError(t, c.Commit(http.StatusOK, http.Header{}))
		before := s.store.calls()
		for _, v := range []session.Session{v, from(t, c)} {
			for name, err := range callWriters(c, v) {
				require.ErrorIs(t, err, reqctx.ErrCommitted, name)
				require.ErrorContains(t, err, "session: ", name)
			}
		}
		require.Equal(t, before, s.store.calls(), "nothing is loaded, saved or destroyed")
		require.Equal(t, "ada", must(v.Get("user")), "reading is still allowed")

		require.NoError(t, c.Finish())
		finished, err := session.From(c)
		require.ErrorIs(t, err, reqctx.ErrFinished)
		for _, v := range []session.Session{v, finished} {
			for name, err := range callWriters(c, v) {
				require.ErrorIs(t, err, reqctx.ErrFinished, name)
			}
			_, err = v.Get("user")
			require.ErrorIs(t, err, reqctx.ErrFinished)
			require.Equal(t, "[redacted]", fmt.Sprint(v))
		}
	}
	require.Equal(t, "ada", s.user(t, cookie))
}

// TestWritesRacingTheCommitAreKeptOrRefused calls Set during the commit. The value is saved, or Set returns an error.
func TestWritesRacingTheCommitAreKeptOrRefused(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	for round := range 50 {
		c := s.begin(t, cookie)
		v := from(t, c)
		names := make([]string, 8)
		errs := make([]error, len(names))
		var wg sync.WaitGroup
		for i := range names {
			names[i] = fmt.Sprintf("r%d-%d", round, i)
			wg.Go(func() { errs[i] = v.Set(names[i], true) })
		}
		wg.Go(func() { _ = c.Commit(http.StatusOK, http.Header{}) })
		wg.Wait()
		must(s.end(t, c))
		s.do(t, cookie, func(_ context.Context, v session.Session) {
			for i, name := range names {
				got := must(v.Get(name))
				require.Equal(t, errs[i] == nil, got == true)
				require.True(t, errs[i] == nil || errors.Is(errs[i], reqctx.ErrCommitted))
			}
		})
	}
}

// TestHeaderGoesOutDuringAMethod sends the header while a method still waits for the session to be loaded.
func TestHeaderGoesOutDuringAMethod(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(session.Session) error
		want error
		left string
	}{
		"Set":     {func(v session.Session) error { return v.Set("user", "eve") }, reqctx.ErrCommitted, "ada"},
		"Delete":  {func(v session.Session) error { return v.Delete("user") }, reqctx.ErrCommitted, "ada"},
		"Renew":   {session.Session.Renew, reqctx.ErrCommitted, "ada"},
		"Destroy": {session.Session.Destroy, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, session.Options{})
			cookie := s.login(t, "ada")
			c := s.begin(t, cookie)
			v := from(t, c)
			entered, release, returned := make(chan struct{}), make(chan struct{}), make(chan error)
			s.store.onLoad = func() error { close(entered); <-release; return nil }
			go func() { returned <- tt.do(v) }()
			<-entered
			h := http.Header{}
			require.NoError(t, c.Commit(http.StatusOK, h))
			close(release)
			require.ErrorIs(t, <-returned, tt.want)
			require.Empty(t, h["Set-Cookie"])
			s.store.onLoad = nil
			require.Equal(t, tt.left, s.user(t, cookie))
		})
	}
}
