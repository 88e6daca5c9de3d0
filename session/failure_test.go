package session_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/memstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

var errDown = errors.New("connection refused")

func down() error { return errDown }

func TestFailedLoadReachesEveryMethod(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	s.store.onLoad = down
	before := s.store.calls()
	c := s.begin(t, cookie)
	v := from(t, c)
	errs := callWriters(c, v)
	_, errs["Get"] = v.Get("user")
	_, errs["Exists"] = v.Exists()
	_, errs["ID"] = v.ID()
	_, errs["User"] = v.User()
	_, errs["List"] = v.List()
	for name, err := range errs {
		require.ErrorIs(t, err, errDown, name)
		requireStatus(t, err, http.StatusServiceUnavailable)
	}
	h, err := s.end(t, c)
	require.NoError(t, err, "there is nothing to save")
	require.Empty(t, h["Set-Cookie"])
	require.Equal(t, [3]int64{before[0] + 1, before[1], 0}, s.store.calls(), "one request asks once")
}

func TestFailedSaveIsAnErrorWithoutCookie(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	s.store.onCommit = down
	for name, tt := range map[string]struct {
		cookie string
		write  func(session.Session) error
	}{
		"new":    {"", func(v session.Session) error { return v.Set("a", 1) }},
		"change": {cookie, func(v session.Session) error { return v.Set("user", "eve") }},
		"renew":  {cookie, session.Session.Renew},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.begin(t, tt.cookie)
			require.NoError(t, tt.write(from(t, c)))
			h, err := s.end(t, c)
			require.ErrorIs(t, err, errDown)
			require.ErrorContains(t, err, "session: cannot save")
			requireStatus(t, err, http.StatusServiceUnavailable)
			require.Empty(t, h["Set-Cookie"])
			require.Empty(t, h["Cache-Control"])
		})
	}
	require.Equal(t, "ada", s.user(t, cookie))
}

func TestFailedDestroyKeepsEverything(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	s.store.onDestroy = down
	c := s.begin(t, cookie)
	err := from(t, c).Destroy()
	require.ErrorIs(t, err, errDown)
	requireStatus(t, err, http.StatusServiceUnavailable)
	h := must(s.end(t, c))
	require.Empty(t, h["Set-Cookie"])
	require.Equal(t, "ada", s.user(t, cookie))
}

func TestTooLargeSessionIsTheServersFault(t *testing.T) {
	s := newSiteOn(t, newMemory(t, memstore.Options{MaxBytes: 4096}), session.Options{})
	c := s.begin(t, "")
	require.NoError(t, from(t, c).Set("big", strings.Repeat("x", 8192)))
	h, err := s.end(t, c)
	require.ErrorIs(t, err, session.ErrTooLarge)
	requireStatus(t, err, http.StatusInternalServerError)
	require.Empty(t, h["Set-Cookie"])
}

func TestLoadIsCancelledWithTheRequest(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	c := s.begin(t, cookie)
	ctx, cancel := context.WithCancel(c)
	entered, release := make(chan struct{}), make(chan struct{})
	s.store.onLoad = func() error { close(entered); <-release; return nil }
	failed := make(chan error)
	go func() {
		_, err := userField.Get(ctx)
		failed <- err
	}()
	<-entered
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled, "a reader leaves when its own context ends")
	close(release)
	user, err := userField.Get(c)
	require.NoError(t, err, "and the load goes on for the others")
	require.Equal(t, "ada", user)
}

// TestRecordThatCannotBeReadIsNoSession checks that a client whose stored session cannot be read gets a new session.
func TestRecordThatCannotBeReadIsNoSession(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	s.store.onLoad = func() error { return fmt.Errorf("half a record: %w", storage.ErrCorrupt) }
	fresh := cookieOf(t, s.do(t, cookie, func(ctx context.Context, v session.Session) {
		require.Empty(t, must(userField.Get(ctx)))
		require.NoError(t, userField.Set(ctx, "ada"))
	}))
	s.store.onLoad = nil
	require.NotEqual(t, cookie[:38], fresh[:38], "what is there stays")
	require.Equal(t, "ada", s.user(t, fresh))
	require.Contains(t, s.log.String(), "half a record")
	require.Contains(t, s.log.String(), `"level":"ERROR"`)
}
