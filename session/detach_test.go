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
	"github.com/lazyreq/lazyreq/session/storage"
)

// stuck is a store whose calls that save or end sessions return only when their contexts end.
type stuck struct{ session.Store }

func wait(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }

func (stuck) Commit(ctx context.Context, _ storage.Delta) error { return wait(ctx) }
func (stuck) Destroy(ctx context.Context, _ storage.Locator, _ storage.Digest) error {
	return wait(ctx)
}
func (stuck) Revoke(ctx context.Context, _ string, _ func(storage.Locator) bool) (int, error) {
	return 0, wait(ctx)
}

// TestDetachedCallsAreBounded checks how long a call continues if the client leaves and the store hangs.
func TestDetachedCallsAreBounded(t *testing.T) {
	for name, tt := range map[string]struct{ deadline, want time.Duration }{
		"by default":                {0, 5 * time.Second},
		"by the request's":          {time.Second, time.Second},
		"by default, which is less": {time.Minute, 5 * time.Second},
	} {
		for what, act := range map[string]func(v session.Session) error{
			"save":         func(v session.Session) error { return v.Set("a", 1) },
			"Destroy":      session.Session.Destroy,
			"RevokeOthers": func(v session.Session) error { _, err := v.RevokeOthers(); return err },
			"RevokeAll":    func(v session.Session) error { _, err := v.RevokeAll(); return err },
		} {
			t.Run(what+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSite(t, session.Options{})
					cookie := s.bind(t, "", "ada", "phone")
					ctx, leave := context.WithCancel(t.Context())
					defer leave()
					if tt.deadline > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, tt.deadline)
						defer cancel()
					}
					c := s.beginOn(t, ctx, cookie)
					v := from(t, c)
					must(v.Exists())
					leave()
					s.store.Store = stuck{s.store.Store}
					began := time.Now()
					err := act(v)
					if _, errSave := s.end(t, c); err == nil {
						err = errSave
					}
					require.ErrorIs(t, err, context.DeadlineExceeded)
					requireStatus(t, err, http.StatusServiceUnavailable)
					require.Equal(t, tt.want, time.Since(began))
				})
			})
		}
	}
}

// TestReadsEndWithTheClient checks that a read is cancelled if the client leaves.
func TestReadsEndWithTheClient(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	ctx, leave := context.WithCancel(t.Context())
	c := s.beginOn(t, ctx, cookie)
	leave()
	before := s.store.calls()
	v := from(t, c)
	_, err := v.Get("user")
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, before, s.store.calls())
	require.NoError(t, c.Finish())
	require.ErrorIs(t, v.Destroy(), reqctx.ErrFinished)
	require.Equal(t, before, s.store.calls(), "a finished request ends nothing")
}

// stuckLoad is a store whose next Load returns only when its context ends.
type stuckLoad struct {
	session.Store
	begun chan struct{}
}

func (s *stuckLoad) Load(ctx context.Context, l storage.Locator, d storage.Digest, limits storage.Limits) (storage.Record, error) {
	if begun := s.begun; begun != nil {
		s.begun = nil // before the test goes on, whose next Load reads it
		close(begun)
		return storage.Record{}, wait(ctx)
	}
	return s.Store.Load(ctx, l, d, limits)
}

// TestEndWhileTheClientLeavesTheLoad checks that a session ends even if the client leaves while the session is loaded.
func TestEndWhileTheClientLeavesTheLoad(t *testing.T) {
	for name, act := range map[string]func(v session.Session) error{
		"Destroy":   session.Session.Destroy,
		"RevokeAll": func(v session.Session) error { _, err := v.RevokeAll(); return err },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, session.Options{})
			cookie := s.bind(t, "", "ada", "phone")
			ctx, leave := context.WithCancel(t.Context())
			c := s.beginOn(t, ctx, cookie)
			begun := make(chan struct{})
			s.store.Store = &stuckLoad{s.store.Store, begun}
			require.NoError(t, session.Loaded.Start(c))
			<-begun
			go leave()
			require.NoError(t, act(from(t, c)))
			require.NoError(t, c.Commit(http.StatusOK, http.Header{}))
			require.NoError(t, c.Finish())
			require.Empty(t, s.bound(t, cookie))
		})
	}
}

// TestSessionOfAnOuterRequest checks that a request inside another request uses the session of the outer request, and
// can write to it until the outer request commits.
func TestSessionOfAnOuterRequest(t *testing.T) {
	s := newSite(t, session.Options{})
	cookie := s.login(t, "ada")
	outer := s.begin(t, cookie)
	inner := reqctx.New(outer, reqctx.NewRegistry(reqctx.Options{}))
	require.NoError(t, inner.Commit(http.StatusOK, http.Header{}))
	visits := session.NewField[int]("visits")
	require.NoError(t, visits.Set(inner, 1))
	require.NoError(t, from(t, inner).Renew())
	require.NoError(t, inner.Finish())
	must(s.end(t, outer))

	outer = s.begin(t, cookie)
	inner = reqctx.New(outer, reqctx.NewRegistry(reqctx.Options{}))
	require.NoError(t, outer.Commit(http.StatusOK, http.Header{}))
	require.ErrorIs(t, from(t, inner).Destroy(), reqctx.ErrCommitted)
	require.ErrorIs(t, visits.Set(inner, 2), reqctx.ErrCommitted)
	require.NoError(t, inner.Finish())
}

// TestSessionOfAnEndedContext checks that a Session remains usable after the context that was passed to From has ended.
func TestSessionOfAnEndedContext(t *testing.T) {
	s := newSite(t, session.Options{})
	ctx, cancel := context.WithCancel(s.begin(t, s.login(t, "ada")))
	v := from(t, ctx)
	cancel()
	require.Equal(t, "ada", must(v.Get("user")))
}
