package session_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/session"
)

// update runs a request that only updates the balance.
func (s *site) update(t *testing.T, cookie string, fn func(int) (int, error)) error {
	c := s.begin(t, cookie)
	if err := balance.Update(c, fn); err != nil {
		return err
	}
	return errors.Join(c.Commit(http.StatusOK, http.Header{}), c.Finish())
}

// hold starts an update on a goroutine and returns while the update has the turn. After release is called, the update
// ends with the result of end.
func (s *site) hold(t *testing.T, cookie string, end func(int) (int, error)) (release func()) {
	held, released := make(chan struct{}), make(chan struct{})
	hold := sync.OnceFunc(func() { close(held); <-released })
	go func() {
		defer func() { _ = recover() }()
		if err := s.update(t, cookie, func(n int) (int, error) { hold(); return end(n) }); err != nil {
			require.ErrorIs(t, err, errRefused)
		}
	}()
	<-held
	return func() { close(released) }
}

var errRefused = errors.New("refused")

// inBubble runs test with a fake clock. Afterwards, it fails if an update is still in a queue.
func inBubble(t *testing.T, test func(t *testing.T, s *site, cookie string)) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, session.Options{})
		test(t, s, s.login(t, "ada"))
		synctest.Wait()
		require.Zero(t, s.m.Turns())
	})
}

func TestManyUpdatesTakeTurns(t *testing.T) {
	inBubble(t, func(t *testing.T, s *site, cookie string) {
		trip := func() error { pass(500 * time.Microsecond); return nil }
		s.store.onLoad, s.store.onCommit = trip, trip
		before := s.store.calls()
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				for range 10 {
					c := s.begin(t, cookie)
					require.NoError(t, balance.Update(c, plus(1)))
					require.NoError(t, balance.Update(c, plus(1)))
					require.NoError(t, c.Finish())
				}
			})
		}
		wg.Wait()
		require.Equal(t, before[1]+640, s.store.calls()[1], "none was a conflict")
		require.Equal(t, 640, s.balance(t, cookie))
	})
}

func TestUpdateWaitsAtMost50Milliseconds(t *testing.T) {
	inBubble(t, func(t *testing.T, s *site, cookie string) {
		release := s.hold(t, cookie, plus(1))
		start := time.Now()
		require.NoError(t, s.update(t, cookie, plus(10)))
		require.Equal(t, 50*time.Millisecond, time.Since(start))
		release()
		synctest.Wait()
		require.Equal(t, 11, s.balance(t, cookie), "the slow one has found the new value")
	})
}

func TestUpdateThatFailsGivesItsTurnOn(t *testing.T) {
	for name, end := range map[string]func(int) (int, error){
		"error":  func(int) (int, error) { return 0, errRefused },
		"panic":  func(int) (int, error) { panic("boom") },
		"Goexit": func(int) (int, error) { runtime.Goexit(); return 0, nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *site, cookie string) {
				release := s.hold(t, cookie, end)
				start := time.Now()
				go func() { require.NoError(t, s.update(t, cookie, plus(1))) }()
				synctest.Wait()
				require.Equal(t, 1, s.m.Turns())
				release()
				synctest.Wait()
				require.Equal(t, 1, s.balance(t, cookie))
				require.Zero(t, time.Since(start))
			})
		})
	}
}

func TestUpdateDoesNotWaitForACallerThatLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, s *site, cookie string) {
		release := s.hold(t, cookie, plus(1))
		start := time.Now()
		ctx, leave := context.WithCancelCause(s.begin(t, cookie))
		left := errors.New("left")
		go func() {
			err := balance.Update(ctx, func(int) (int, error) { panic("it had left") })
			require.ErrorIs(t, err, left)
		}()
		synctest.Wait()
		leave(left)
		synctest.Wait()
		require.NoError(t, s.update(t, cookie, plus(10)))
		release()
		synctest.Wait()
		require.Equal(t, 11, s.balance(t, cookie))
		require.Less(t, time.Since(start), 51*time.Millisecond)
	})
}

func TestUpdateWithinAnUpdateDoesNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *site, cookie string) {
		start := time.Now()
		points := session.NewField[int]("points")
		var both, done sync.WaitGroup
		both.Add(2)
		for outer, inner := range map[session.Field[int]]session.Field[int]{balance: points, points: balance} {
			done.Go(func() {
				c := s.begin(t, cookie)
				meet := sync.OnceFunc(func() { both.Done(); both.Wait() }) // now each update has the turn that the other update needs
				require.NoError(t, outer.Update(c, func(n int) (int, error) {
					meet()
					return n + 1, inner.Update(c, plus(0))
				}))
			})
		}
		done.Wait()
		require.Equal(t, 1, s.balance(t, cookie))
		require.Zero(t, time.Since(start))
	})
}

func TestUpdateOfAFieldWithinItsUpdateDoesNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T, s *site, cookie string) {
		start := time.Now()
		c := s.begin(t, cookie)
		once := sync.OnceValue(func() error { return balance.Update(c, plus(10)) })
		require.NoError(t, balance.Update(c, func(n int) (int, error) { return n + 1, once() }))
		require.Equal(t, 11, s.balance(t, cookie))
		require.Zero(t, time.Since(start))
	})
}

func TestOthersDoNotWaitForAnUpdate(t *testing.T) {
	inBubble(t, func(t *testing.T, s *site, cookie string) {
		release, releaseNew := s.hold(t, cookie, plus(1)), s.hold(t, "", plus(1))
		start := time.Now()
		s.do(t, cookie, func(ctx context.Context, _ session.Session) {
			require.NoError(t, balance.Set(ctx, 40))
			require.NoError(t, visits.Add(ctx, 1))
			require.NoError(t, cartField.Update(ctx, func(c cart) (cart, error) { return c, nil }))
		})
		require.NoError(t, s.update(t, s.login(t, "eve"), plus(1)), "another session")
		require.NoError(t, s.update(t, "", plus(1)), "a new session")
		require.Zero(t, time.Since(start))
		release()
		releaseNew()
		synctest.Wait()
		require.Equal(t, 41, s.balance(t, cookie))
	})
}
