package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

// TestAStartedSessionCountsAsRead checks that a session whose load was started counts as read: the response has Vary, and
// the load counts as use.
func TestAStartedSessionCountsAsRead(t *testing.T) {
	type starter interface{ Start(context.Context) error }
	user := reqctx.NewKey[any]("user")
	for _, starters := range [][]starter{{session.Loaded}, {user}, {session.LoggedIn, user}} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, session.Options{IdleTimeout: 10 * time.Minute})
			reqctx.Provide(s.reg, user, reqctx.Prop[any]{Timeout: time.Minute, Resolve: func(ctx context.Context) (any, error) {
				v, err := session.From(ctx)
				if err != nil {
					return nil, err
				}
				return v.Get("user")
			}})
			cookie := s.login(t, "ada")
			pass(6 * time.Minute)
			before := s.store.calls()
			c := s.begin(t, cookie)
			for _, s := range starters {
				require.NoError(t, s.Start(c))
			}
			synctest.Wait()
			h, err := s.end(t, c)
			require.NoError(t, err)
			require.Equal(t, "Cookie", h.Get("Vary"))
			require.Equal(t, [3]int64{before[0] + 1, before[1], before[2]}, s.store.calls(), "one load")
			pass(6 * time.Minute)
			require.Equal(t, "ada", s.user(t, cookie))
		})
	}
}
