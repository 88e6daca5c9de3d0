package session_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
)

func TestRequirements(t *testing.T) {
	s := newSite(t, session.Options{})
	require.Equal(t, "session", session.Loaded.Name())
	strange, known := s.login(t, "ada"), s.bind(t, "", "ada", "phone")
	for _, tt := range []struct {
		r interface {
			Start(context.Context) error
			Require(context.Context) error
		}
		text, cookie  string
		want          error
		loads, broken bool
	}{
		{session.Loaded, "session", "", nil, false, false},
		{session.Loaded, "session", strange, nil, true, false},
		{session.Loaded, "session", known, errDown, true, true},
		{session.LoggedIn, "session.LoggedIn", "", session.ErrNotBound, false, false},
		{session.LoggedIn, "session.LoggedIn", strange, session.ErrNotBound, true, false},
		{session.LoggedIn, "session.LoggedIn", known, nil, true, false},
		{session.LoggedIn, "session.LoggedIn", known, errDown, true, true},
	} {
		require.Equal(t, tt.text, fmt.Sprint(tt.r))
		if s.store.onLoad = nil; tt.broken {
			s.store.onLoad = down
		}
		before := s.store.calls()[0]
		c := s.begin(t, tt.cookie)
		require.NoError(t, tt.r.Start(c))
		require.ErrorIs(t, tt.r.Require(c), tt.want, "%v", tt)
		require.ErrorIs(t, tt.r.Require(c), tt.want, "%v", tt)
		loads := int64(0)
		if tt.loads {
			loads = 1
		}
		require.Equal(t, loads, s.store.calls()[0]-before, "%v", tt)
		require.NoError(t, c.Finish())
		require.ErrorIs(t, tt.r.Start(c), reqctx.ErrFinished)
		require.ErrorIs(t, tt.r.Require(c), reqctx.ErrFinished)
		require.ErrorIs(t, tt.r.Start(t.Context()), reqctx.ErrNoRequest)
		require.ErrorIs(t, tt.r.Require(t.Context()), reqctx.ErrNoRequest)
	}
}
