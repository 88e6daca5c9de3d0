package session_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

var notice = session.NewFlash[string]("notice")

func (s *site) take(t *testing.T, cookie string) (got string, ok bool) {
	t.Helper()
	s.do(t, cookie, func(ctx context.Context, _ session.Session) { got, ok = s.takeOn(t, ctx) })
	return got, ok
}

func (s *site) takeOn(t *testing.T, ctx context.Context) (string, bool) {
	t.Helper()
	got, ok, err := notice.Take(ctx)
	require.NoError(t, err)
	return got, ok
}

// leave sends a request that sets the notice.
func (s *site) leave(t *testing.T, cookie, text string) {
	t.Helper()
	s.do(t, cookie, func(ctx context.Context, _ session.Session) { require.NoError(t, notice.Set(ctx, text)) })
}

func TestFlashIsReadOnce(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	s.leave(t, cookie, "saved")
	before := s.store.calls()
	got, ok := s.take(t, cookie)
	require.True(t, ok)
	require.Equal(t, "saved", got)
	require.Equal(t, [3]int64{before[0] + 1, before[1] + 1, 0}, s.store.calls())
	_, ok = s.take(t, cookie)
	require.False(t, ok)
	require.Equal(t, [3]int64{before[0] + 2, before[1] + 1, 0}, s.store.calls(), "nothing there costs nothing more")
	_, ok = s.take(t, "")
	require.False(t, ok)
}

func TestOneOfManyReadersGetsTheFlash(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	for range 20 {
		s.leave(t, cookie, "saved")
		var got atomic.Int64
		errs := meet(t, s, cookie, 20, func(ctx context.Context, _ int) error {
			_, ok, err := notice.Take(ctx)
			if ok {
				got.Add(1)
			}
			_, again, err2 := notice.Take(ctx)
			require.False(t, again)
			require.NoError(t, err2)
			return err
		})
		for _, err := range errs {
			require.NoError(t, err)
		}
		require.EqualValues(t, 1, got.Load())
	}
}

func TestFlashInTheSameRequest(t *testing.T) {
	s := newSite(t, session.Options{})
	take := func(ctx context.Context, _ session.Session) {
		require.NoError(t, notice.Set(ctx, "new"))
		got, ok := s.takeOn(t, ctx)
		require.True(t, ok)
		require.Equal(t, "new", got)
		_, ok = s.takeOn(t, ctx)
		require.False(t, ok)
	}
	require.Empty(t, s.do(t, "", take)["Set-Cookie"], "nothing is left to save")
	cookie := s.login(t, "ada")
	s.leave(t, cookie, "unread")
	s.do(t, cookie, take)
	_, ok := s.take(t, cookie)
	require.False(t, ok, "it has replaced the one before")

	s.leave(t, cookie, "one")
	s.do(t, cookie, func(ctx context.Context, _ session.Session) {
		got, _ := s.takeOn(t, ctx)
		require.NoError(t, notice.Set(ctx, got+" more"))
	})
	got, _ := s.take(t, cookie)
	require.Equal(t, "one more", got)
}

func TestFlashTakeFailure(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	s.leave(t, cookie, "saved")

	c := s.begin(t, cookie)
	s.store.onCommit = down
	_, ok, err := notice.Take(c)
	require.ErrorIs(t, err, errDown)
	requireStatus(t, err, http.StatusServiceUnavailable)
	require.False(t, ok)
	s.store.onCommit = nil
	require.NoError(t, c.Commit(http.StatusOK, http.Header{}))
	_, _, err = notice.Take(c)
	require.ErrorIs(t, err, reqctx.ErrCommitted)

	slow := s.begin(t, cookie)
	must(userField.Get(slow))
	s.do(t, cookie, func(_ context.Context, v session.Session) { require.NoError(t, v.Destroy()) })
	_, ok, err = notice.Take(slow)
	require.NoError(t, err)
	require.False(t, ok, "it ended with the session")
}

func TestFlashThatCannotBeDecodedIsGone(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	s.do(t, cookie, func(_ context.Context, v session.Session) { require.NoError(t, v.Set("notice", 5)) })
	_, ok := s.take(t, cookie)
	require.False(t, ok)
	require.Contains(t, s.log.String(), `"field":"notice"`)
	s.do(t, cookie, func(_ context.Context, v session.Session) {
		require.Nil(t, must(v.Get("notice")))
	})
	gob := session.NewFlash[cart]("gob").WithCodec(gobCodec{})
	s.do(t, cookie, func(ctx context.Context, _ session.Session) { require.NoError(t, gob.Set(ctx, cart{Total: 2})) })
	s.do(t, cookie, func(ctx context.Context, _ session.Session) {
		got, ok, err := gob.Take(ctx)
		require.NoError(t, err)
		require.True(t, ok)
		require.EqualValues(t, 2, got.Total)
	})
}
