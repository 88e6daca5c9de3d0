package session_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

func plus(n int) func(int) (int, error) { return func(v int) (int, error) { return v + n, nil } }

func (s *site) balance(t *testing.T, cookie string) (n int) {
	t.Helper()
	s.do(t, cookie, func(ctx context.Context, _ session.Session) { n = must(balance.Get(ctx)) })
	return n
}

// setBalance sends another request, which writes the balance.
func (s *site) setBalance(t *testing.T, cookie string, n int) {
	t.Helper()
	s.do(t, cookie, func(ctx context.Context, _ session.Session) { require.NoError(t, balance.Set(ctx, n)) })
}

func TestUpdateIsAtOnceAndOneStoreCall(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	before := s.store.calls()
	h := s.do(t, cookie, func(ctx context.Context, _ session.Session) {
		require.NoError(t, balance.Update(ctx, plus(5)))
		require.Equal(t, 5, s.balance(t, cookie), "another request sees it already")
		require.Equal(t, 5, must(balance.Get(ctx)), "and this one too")
	})
	require.Empty(t, h["Set-Cookie"])
	require.Equal(t, [3]int64{before[0] + 2, before[1] + 1, 0}, s.store.calls())
}

func TestUpdatesOfOneRequestAllCount(t *testing.T) {
	for name, prepare := range map[string]func(ctx context.Context) error{
		"stored":       func(context.Context) error { return nil },
		"its own Set":  func(ctx context.Context) error { return balance.Set(ctx, 0) },
		"own addition": func(ctx context.Context) error { return session.NewCounter("balance").Add(ctx, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, session.Options{})
			cookie := s.login(t, "ada")
			s.do(t, cookie, func(ctx context.Context, _ session.Session) {
				require.NoError(t, prepare(ctx))
				var wg sync.WaitGroup
				for range 10 {
					wg.Go(func() {
						if err := balance.Update(ctx, plus(1)); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
			})
			require.Equal(t, 10, s.balance(t, cookie))
		})
	}
}

// TestUpdateRetriesWithTheNewValue changes the field while the function of an update runs.
func TestUpdateRetriesWithTheNewValue(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	for name, tt := range map[string]struct {
		cookie string
		change func(ctx context.Context) error
	}{
		"another request": {cookie, func(context.Context) error { s.setBalance(t, cookie, 40); return nil }},
		"no session":      {"", func(ctx context.Context) error { return balance.Set(ctx, 40) }},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []int
			h := s.do(t, tt.cookie, func(ctx context.Context, _ session.Session) {
				require.NoError(t, balance.Update(ctx, func(v int) (int, error) {
					if seen = append(seen, v); len(seen) == 1 {
						require.NoError(t, tt.change(ctx))
					}
					return v + 2, nil
				}))
			})
			if tt.cookie == "" {
				tt.cookie = cookieOf(t, h)
			}
			require.Equal(t, []int{0, 40}, seen)
			require.Equal(t, 42, s.balance(t, tt.cookie))
		})
	}
}

func TestUpdateGivesUpUnderContention(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	tries := 0
	s.do(t, cookie, func(ctx context.Context, _ session.Session) {
		err := balance.Update(ctx, func(v int) (int, error) {
			tries++
			s.setBalance(t, cookie, v+1000)
			return v + 1, nil
		})
		require.ErrorIs(t, err, session.ErrConflict)
		requireStatus(t, err, http.StatusConflict)
	})
	require.Equal(t, 64, tries)
}

func TestUpdateThatRefusesChangesNothing(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	broke := errors.New("broke")
	h := s.do(t, cookie, func(ctx context.Context, _ session.Session) {
		before := s.store.calls()
		require.ErrorIs(t, balance.Update(ctx, func(int) (int, error) { return 0, broke }), broke)
		callback := session.NewField[any]("callback")
		require.ErrorContains(t, callback.Update(ctx, func(any) (any, error) { return func() {}, nil }), `field "callback" cannot be encoded`)
		require.PanicsWithValue(t, "boom", func() { _ = balance.Update(ctx, func(int) (int, error) { panic("boom") }) })
		require.Equal(t, [3]int64{before[0] + 1, before[1], 0}, s.store.calls())
		require.NoError(t, balance.Update(ctx, plus(1)), "the session still works")
	})
	require.Empty(t, h["Set-Cookie"])
	require.Equal(t, 1, s.balance(t, cookie))
}

func TestUpdateWithoutSessionIsSavedWithTheRest(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := cookieOf(t, s.do(t, "", func(ctx context.Context, v session.Session) {
		require.NoError(t, errors.Join(balance.Update(ctx, plus(3)), balance.Update(ctx, plus(4)), v.Set("user", "ada")))
		require.Zero(t, s.store.calls())
	}))
	require.Equal(t, 7, s.balance(t, cookie))
}

// TestUpdateOverAnAdditionLosesNothing updates a counter after an addition by the same request. The result depends on the
// loaded number, so the save must fail if another request has changed that number.
func TestUpdateOverAnAdditionLosesNothing(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	c := s.begin(t, cookie)
	require.NoError(t, session.NewCounter("balance").Add(c, 1))
	require.NoError(t, balance.Update(c, plus(10)))
	s.setBalance(t, cookie, 100)
	_, err := s.end(t, c)
	require.ErrorIs(t, err, session.ErrConflict)
	require.Equal(t, 100, s.balance(t, cookie))
}

// TestUpdateOfAnEndedSession ends the session or sends the header, before an update or during it.
func TestUpdateOfAnEndedSession(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	c := s.begin(t, cookie)
	must(balance.Get(c))
	s.do(t, cookie, func(_ context.Context, v session.Session) { require.NoError(t, v.Destroy()) })
	require.ErrorIs(t, balance.Update(c, plus(1)), session.ErrGone)
	require.NoError(t, c.Commit(http.StatusOK, http.Header{}))
	require.ErrorIs(t, balance.Update(c, plus(1)), reqctx.ErrCommitted)
	require.Zero(t, s.balance(t, cookie))

	s.do(t, s.login(t, "ada"), func(ctx context.Context, v session.Session) {
		err := balance.Update(ctx, func(int) (int, error) { return 1, v.Destroy() })
		require.ErrorIs(t, err, session.ErrGone)
	})
	for _, cookie := range []string{s.login(t, "ada"), ""} {
		c = s.begin(t, cookie)
		err := balance.Update(c, func(int) (int, error) {
			return 1, errors.Join(visits.Add(c, 1), c.Commit(http.StatusOK, http.Header{}))
		})
		require.ErrorIs(t, err, reqctx.ErrCommitted)
	}
}

func TestUpdateWithStoreDown(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	c := s.begin(t, cookie)
	must(balance.Get(c))
	s.store.onCommit = down
	err := balance.Update(c, plus(1))
	require.ErrorIs(t, err, errDown)
	requireStatus(t, err, http.StatusServiceUnavailable)
	s.store.onCommit = func() error { return session.ErrConflict }
	s.store.onLoad = down
	require.ErrorIs(t, balance.Update(c, plus(1)), errDown)
	s.store.onCommit, s.store.onLoad = nil, nil
	_, err = s.end(t, c)
	require.NoError(t, err)
	require.Zero(t, s.balance(t, cookie))
}

func TestUpdateOfAValueThatCannotBeDecoded(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	s.do(t, cookie, func(_ context.Context, v session.Session) { require.NoError(t, v.Set("cart", strings.Repeat("x", 10))) })
	s.do(t, cookie, func(ctx context.Context, _ session.Session) {
		require.NoError(t, cartField.Update(ctx, func(c cart) (cart, error) {
			require.Equal(t, cart{}, c)
			return cart{Total: 1}, nil
		}))
		require.Contains(t, s.log.String(), `"field":"cart"`)
		require.Equal(t, cart{Total: 1}, must(cartField.Get(ctx)))
	})
}
