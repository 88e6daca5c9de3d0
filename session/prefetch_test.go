package session_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

// prefetched runs a request that prefetches these properties, and then handler.
func (s *site) prefetched(t *testing.T, cookie string, names []string, handler func(ctx context.Context)) http.Header {
	t.Helper()
	c := s.begin(t, cookie)
	require.NoError(t, c.Prefetch(names...))
	synctest.Wait()
	handler(c)
	h, err := s.end(t, c)
	require.NoError(t, err)
	return h
}

var loadOnly = []string{"session.load"}

func TestAnUnreadPrefetchLeavesTheSessionAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, session.Options{IdleTimeout: 10 * time.Minute})
		cookie := s.login(t, "ada")
		pass(6 * time.Minute)
		before := s.store.calls()
		h := s.prefetched(t, cookie, loadOnly, func(context.Context) {})
		require.Empty(t, h)
		after := s.store.calls()
		require.Equal(t, [3]int64{before[0] + 1, before[1], before[2]}, after, "one load")
		pass(4 * time.Minute)
		require.Empty(t, s.user(t, cookie), "nothing has touched it")
	})
}

func TestReadingAPrefetchedSessionIsUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, session.Options{IdleTimeout: 10 * time.Minute})
		cookie := s.login(t, "ada")
		read := func(ctx context.Context) {
			user, err := from(t, ctx).Get("user")
			require.NoError(t, err)
			require.Equal(t, "ada", user)
		}
		before := s.store.calls()
		h := s.prefetched(t, cookie, loadOnly, read)
		require.Equal(t, "Cookie", h.Get("Vary"))
		require.Equal(t, before[0]+1, s.store.calls()[0], "no touch is due")
		for range 3 {
			pass(6 * time.Minute)
			before = s.store.calls()
			s.prefetched(t, cookie, loadOnly, read)
			require.Equal(t, before[0]+2, s.store.calls()[0], "a load and a touch")
		}
	})
}

// userOf is a property that reads the session, as an application's user does.
var userOf = reqctx.NewKey[any]("user")

func provideUser(s *site) {
	reqctx.Provide(s.reg, userOf, reqctx.Prop[any]{Prefetch: true, Timeout: time.Minute, Resolve: func(ctx context.Context) (any, error) {
		v, err := session.From(ctx)
		if err != nil {
			return nil, err
		}
		return v.Get("user")
	}})
}

func TestAPrefetchedPropertyReadsTheSession(t *testing.T) {
	for _, names := range [][]string{{"user"}, {"session.load", "user"}} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, session.Options{IdleTimeout: 10 * time.Minute})
			provideUser(s)
			cookie := s.login(t, "ada")
			pass(5 * time.Minute)
			h := s.prefetched(t, cookie, names, func(context.Context) {})
			require.Empty(t, h, "the request has not read its session")
			h = s.prefetched(t, cookie, names, func(ctx context.Context) {
				u, err := userOf.Get(ctx)
				require.NoError(t, err)
				require.Equal(t, "ada", u)
			})
			require.Equal(t, "Cookie", h.Get("Vary"))
			pass(6 * time.Minute)
			require.Equal(t, "ada", s.user(t, cookie), "the second request has touched it")
		})
	}
}

func TestASessionFromAPrefetchIsTheRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, session.Options{})
		key := reqctx.NewKey[*session.Session]("kept")
		reqctx.Provide(s.reg, key, reqctx.Prop[*session.Session]{Prefetch: true, Timeout: time.Minute,
			Resolve: func(ctx context.Context) (*session.Session, error) { return session.From(ctx) }})
		cookie := s.login(t, "ada")
		s.prefetched(t, cookie, []string{"kept"}, func(ctx context.Context) {
			v, err := key.Get(ctx)
			require.NoError(t, err)
			require.NoError(t, v.Set("user", "bob"))
			user, err := from(t, ctx).Get("user")
			require.NoError(t, err)
			require.Equal(t, "bob", user, "both are one session")
		})
		require.Equal(t, "bob", s.user(t, cookie))
	})
}

func TestAFailedTouchIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, session.Options{IdleTimeout: 10 * time.Minute})
		cookie := s.login(t, "ada")
		pass(5 * time.Minute)
		s.prefetched(t, cookie, loadOnly, func(ctx context.Context) {
			_, err := from(t, ctx).Get("user")
			require.NoError(t, err)
			s.store.onLoad = down
		})
		require.Contains(t, s.log.String(), "could not be extended")
	})
}
