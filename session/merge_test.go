package session_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
)

var (
	visits  = session.NewCounter("visits")
	balance = session.NewField[int]("balance")
	seat    = session.NewField[string]("seat").FailOnConflict()
)

// meet runs n requests and returns their errors. All of them load the session before the first one writes.
func meet(t *testing.T, s *site, cookie string, n int, write func(ctx context.Context, i int) error) []error {
	t.Helper()
	errs := make([]error, n)
	var wg, loaded sync.WaitGroup
	loaded.Add(n)
	for i := range n {
		c := s.begin(t, cookie)
		wg.Go(func() {
			_, err := userField.Get(c)
			loaded.Done()
			loaded.Wait()
			if err = errors.Join(err, write(c, i)); err == nil {
				err = c.Commit(http.StatusOK, http.Header{})
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errs
}

func TestConcurrentIncrementsAllCount(t *testing.T) {
	const n = 1000
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	before := s.store.calls()
	for _, err := range meet(t, s, cookie, n, func(ctx context.Context, _ int) error { return visits.Add(ctx, 1) }) {
		require.NoError(t, err)
	}
	require.Equal(t, [3]int64{before[0] + n, before[1] + n, 0}, s.store.calls(), "two store calls each")
	s.do(t, cookie, func(ctx context.Context, _ session.Session) {
		require.EqualValues(t, n, must(visits.Get(ctx)))
	})
}

func TestCounterIsReadWithWhatTheRequestAdds(t *testing.T) {
	s := newSite(t, session.Options{})
	get := func(ctx context.Context, want int64) {
		t.Helper()
		require.Equal(t, want, must(visits.Get(ctx)))
	}
	cookie := cookieOf(t, s.do(t, "", func(ctx context.Context, v session.Session) {
		get(ctx, 0)
		require.NoError(t, visits.Add(ctx, 2))
		require.NoError(t, visits.Add(ctx, 3))
		require.NoError(t, visits.Add(ctx, -1))
		get(ctx, 4)
		require.True(t, must(v.Exists()))
	}))
	s.do(t, cookie, func(ctx context.Context, v session.Session) {
		get(ctx, 4)
		require.NoError(t, visits.Delete(ctx))
		get(ctx, 0)
		require.NoError(t, visits.Add(ctx, 7))
		get(ctx, 7)
	})
	s.do(t, cookie, func(ctx context.Context, v session.Session) {
		get(ctx, 7)
		require.NoError(t, v.Set("visits", 10))
		require.NoError(t, visits.Add(ctx, 1))
		get(ctx, 11)
		require.EqualValues(t, 11, must(session.NewField[int64]("visits").Get(ctx)))
	})
	s.do(t, cookie, func(ctx context.Context, v session.Session) {
		get(ctx, 11)
		require.NoError(t, visits.Add(ctx, 1))
		require.NoError(t, v.Set("visits", 0))
	})
	s.do(t, cookie, func(ctx context.Context, v session.Session) { get(ctx, 0) })
}

func TestAddToAFieldThatIsNoCounter(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	s.do(t, cookie, func(ctx context.Context, v session.Session) {
		user := session.NewCounter("user")
		require.ErrorIs(t, user.Add(ctx, 1), session.ErrNotCounter)
		require.ErrorIs(t, visits.Add(ctx, session.MaxCounter+1), session.ErrNotCounter)
		require.NoError(t, visits.Add(ctx, session.MaxCounter))
		require.ErrorIs(t, visits.Add(ctx, 1), session.ErrNotCounter)
		require.Error(t, session.Counter{}.Add(ctx, 1))
		require.Zero(t, must(user.Get(ctx)))
		require.Contains(t, s.log.String(), `"field":"user"`)
	})
	require.Equal(t, "ada", s.user(t, cookie))
	s.do(t, cookie, func(ctx context.Context, v session.Session) { // from the largest number to the smallest
		for range 2 {
			require.NoError(t, visits.Add(ctx, -session.MaxCounter))
		}
	})
	s.do(t, cookie, func(ctx context.Context, v session.Session) {
		require.EqualValues(t, -session.MaxCounter, must(visits.Get(ctx)))
	})
	require.Panics(t, func() { session.NewCounter("") })
}

// TestAdditionThatCannotBeSavedIsTheServersFault adds to a counter that another request sets to a word meanwhile.
func TestAdditionThatCannotBeSavedIsTheServersFault(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	slow := s.begin(t, cookie)
	require.NoError(t, visits.Add(slow, 1))
	s.do(t, cookie, func(_ context.Context, v session.Session) { require.NoError(t, v.Set("visits", "many")) })
	_, err := s.end(t, slow)
	require.ErrorIs(t, err, session.ErrNotCounter)
	requireStatus(t, err, http.StatusInternalServerError)
}

func TestFailOnConflict(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	alone := func(do func(ctx context.Context) error) {
		t.Helper()
		s.do(t, cookie, func(ctx context.Context, _ session.Session) { require.NoError(t, do(ctx)) })
	}
	alone(func(ctx context.Context) error { return seat.Set(ctx, "1A") })
	alone(func(ctx context.Context) error { return errors.Join(seat.Set(ctx, "1B"), seat.Set(ctx, "1C")) })
	alone(func(ctx context.Context) error { return errors.Join(seat.Delete(ctx), seat.Delete(ctx)) })
	alone(func(ctx context.Context) error { return seat.Set(ctx, "1D") })

	for name, write := range map[string]func(ctx context.Context, v session.Session) error{
		"Set":    func(ctx context.Context, _ session.Session) error { return seat.Set(ctx, "9Z") },
		"Delete": func(ctx context.Context, _ session.Session) error { return seat.Delete(ctx) },
		"unguarded as well": func(ctx context.Context, v session.Session) error {
			return errors.Join(seat.Set(ctx, "9Z"), v.Set("seat", "9Y"))
		},
		"taken": func(ctx context.Context, v session.Session) error {
			_, _, err := session.NewFlash[string]("seat").Take(ctx)
			return errors.Join(err, seat.Set(ctx, "9Z"))
		},
	} {
		c := s.begin(t, cookie)
		_, err := seat.Get(c)
		require.NoError(t, err)
		if name == "taken" {
			require.NoError(t, write(c, from(t, c)), "what it took itself is no conflict")
			must(s.end(t, c))
			continue
		}
		alone(func(ctx context.Context) error { return seat.Set(ctx, name) })
		require.NoError(t, write(c, from(t, c)))
		_, err = s.end(t, c)
		require.ErrorIs(t, err, session.ErrConflict, name)
	}
	t.Run("another field is no conflict", func(t *testing.T) {
		c := s.begin(t, cookie)
		require.NoError(t, seat.Set(c, "2A"))
		alone(func(ctx context.Context) error { return errors.Join(userField.Set(ctx, "bob"), visits.Add(ctx, 1)) })
		require.NoError(t, visits.Add(c, 1))
		must(s.end(t, c))
		require.Equal(t, "bob", s.user(t, cookie), "a save sends only what the request has changed")
		alone(func(ctx context.Context) error {
			require.Equal(t, "2A", must(seat.Get(ctx)))
			require.EqualValues(t, 2, must(visits.Get(ctx)))
			return nil
		})
	})
	t.Run("a new session has none", func(t *testing.T) {
		s.do(t, "", func(ctx context.Context, _ session.Session) { require.NoError(t, seat.Set(ctx, "3A")) })
	})
}
