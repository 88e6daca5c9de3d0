package session_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/storage"
)

// A client whose session cannot be read is not locked out: it begins a new one.
func TestRecordThatCannotBeReadIsNoSession(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	s.store.onLoad = func() error { return fmt.Errorf("half a record: %w", storage.ErrCorrupt) }
	fresh := cookieOf(t, s.do(t, cookie, func(ctx context.Context, v session.Session) {
		user, err := userField.Get(ctx)
		require.NoError(t, err)
		require.Empty(t, user)
		require.NoError(t, userField.Set(ctx, "ada"))
	}))
	s.store.onLoad = nil
	require.NotEqual(t, cookie[:38], fresh[:38], "what is there stays")
	require.Equal(t, "ada", s.user(t, fresh))
	require.Contains(t, s.log.String(), "half a record")
	require.Contains(t, s.log.String(), `"level":"ERROR"`)
}

// About every second call fails: each request either works or returns an error, and the session
// has what the requests that worked have written.
func TestUnreliableStore(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	coin := rand.New(rand.NewPCG(1, 2))
	half := func() error {
		if coin.IntN(2) == 0 {
			return errDown
		}
		return nil
	}
	s.store.onLoad, s.store.onCommit = half, half
	saved := 0
	for range 40 {
		c := s.begin(t, cookie)
		err := visits.Add(c, 1)
		h, commitErr := s.end(t, c)
		err = errors.Join(err, commitErr)
		require.Empty(t, h["Set-Cookie"])
		if err == nil {
			saved++
			continue
		}
		require.ErrorIs(t, err, errDown)
		requireStatus(t, err, http.StatusServiceUnavailable)
	}
	require.NotZero(t, saved)
	require.Less(t, saved, 40)
	s.store.onLoad, s.store.onCommit = nil, nil
	s.do(t, cookie, func(ctx context.Context, _ session.Session) {
		n, err := visits.Get(ctx)
		require.NoError(t, err)
		require.EqualValues(t, saved, n)
	})
}

// A request waits for a slow store once, however much it asks; one that does not
// ask does not wait.
func TestSlowStoreDelaysARequestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, session.Options{})
		cookie := s.login(t, "ada")
		slow := func() error { pass(time.Second); return nil }
		s.store.onLoad, s.store.onCommit = slow, slow
		began := time.Now()
		s.do(t, cookie, func(context.Context, session.Session) {})
		require.Zero(t, time.Since(began))
		s.do(t, cookie, func(ctx context.Context, v session.Session) {
			for range 5 {
				_, err := v.Get("user")
				require.NoError(t, err)
			}
		})
		require.Equal(t, time.Second, time.Since(began))
		s.do(t, cookie, func(ctx context.Context, v session.Session) {
			require.NoError(t, v.Set("a", 1))
			require.NoError(t, v.Set("b", 1))
		})
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}
