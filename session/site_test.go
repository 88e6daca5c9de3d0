package session_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/memstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

// site runs requests that have a session, without a server.
type site struct {
	store *spy
	m     *session.Manager
	reg   *reqctx.Registry
	log   *lockedBuffer
}

func newSite(t testing.TB, o session.Options) *site {
	t.Helper()
	return newSiteOn(t, newMemory(t, memstore.Options{}), o)
}

func newSiteOn(t testing.TB, store session.Store, o session.Options) *site {
	t.Helper()
	s := &site{store: &spy{Store: store}, log: new(lockedBuffer)}
	m, err := session.New(s.store, o)
	require.NoError(t, err)
	s.m = m
	s.reg = reqctx.NewRegistry(reqctx.Options{Logger: slog.New(slog.NewJSONHandler(s.log, nil))})
	session.Provide(s.reg, m)
	return s
}

// begin begins a request that sends this Cookie header.
func (s *site) begin(t testing.TB, cookie string) *reqctx.Host {
	t.Helper()
	return s.beginOn(t, t.Context(), cookie)
}

// beginOn is like begin, for a request whose client leaves when ctx ends.
func (s *site) beginOn(t testing.TB, ctx context.Context, cookie string) *reqctx.Host {
	c := reqctx.New(ctx, s.reg)
	r := httptest.NewRequestWithContext(c, http.MethodGet, "/", nil)
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	c.SetRequest(r)
	t.Cleanup(func() { _ = c.Finish() })
	return c
}

// end commits and finishes a request.
func (s *site) end(t testing.TB, c *reqctx.Host) (http.Header, error) {
	t.Helper()
	h := http.Header{}
	err := c.Commit(http.StatusOK, h)
	require.NoError(t, c.Finish())
	return h, err
}

// do runs a whole request.
func (s *site) do(t testing.TB, cookie string, handler func(ctx context.Context, v session.Session)) http.Header {
	t.Helper()
	c := s.begin(t, cookie)
	handler(c, from(t, c))
	h, err := s.end(t, c)
	require.NoError(t, err)
	return h
}

// login creates a session whose field "user" has this value, and returns the Cookie header for it.
func (s *site) login(t testing.TB, user string) string {
	t.Helper()
	return cookieOf(t, s.do(t, "", func(ctx context.Context, v session.Session) {
		require.NoError(t, userField.Set(ctx, user))
	}))
}

// user returns the field "user" of the session that a Cookie header selects.
func (s *site) user(t testing.TB, cookie string) (user string) {
	t.Helper()
	s.do(t, cookie, func(ctx context.Context, _ session.Session) { user = must(userField.Get(ctx)) })
	return user
}

// callWriters calls all methods that change or end sessions, and returns their errors by name.
func callWriters(ctx context.Context, v session.Session) map[string]error {
	_, othersErr := v.RevokeOthers()
	_, allErr := v.RevokeAll()
	return map[string]error{
		"Set": v.Set("a", 1), "Delete": v.Delete("user"), "Renew": v.Renew(), "Bind": v.Bind("eve"), "Remember": v.Remember(), "Destroy": v.Destroy(),
		"RevokeOthers": othersErr, "RevokeAll": allErr, "Revoke": v.Revoke("x"), "Add": visits.Add(ctx, 1),
		"Field.Set": userField.Set(ctx, "eve"), "Field.Delete": userField.Delete(ctx), "Update": balance.Update(ctx, plus(1)),
	}
}

var userField = session.NewField[string]("user")

func from(t testing.TB, ctx context.Context) session.Session {
	t.Helper()
	return must(session.From(ctx))
}

// cookieOf returns the Cookie header for the only cookie that h sets.
func cookieOf(t testing.TB, h http.Header) string {
	t.Helper()
	require.Len(t, h["Set-Cookie"], 1)
	pair, _, _ := strings.Cut(h.Get("Set-Cookie"), ";")
	require.Len(t, pair, len("__Host-session=")+66)
	return pair
}

// spy is a store that counts calls, and can delay them or make them fail.
type spy struct {
	session.Store
	loads, commits, destroys atomic.Int64

	onLoad, onCommit, onDestroy, onUser func() error // nil, or called before the store
}

func (s *spy) calls() [3]int64 { return [3]int64{s.loads.Load(), s.commits.Load(), s.destroys.Load()} }

// before calls hook, unless it is nil, and returns its error.
func before(hook func() error) error {
	if hook == nil {
		return nil
	}
	return hook()
}

func (s *spy) Load(ctx context.Context, l storage.Locator, d storage.Digest, lim storage.Limits) (storage.Record, error) {
	s.loads.Add(1)
	if err := before(s.onLoad); err != nil {
		return storage.Record{}, err
	}
	return s.Store.Load(ctx, l, d, lim)
}

func (s *spy) Commit(ctx context.Context, d storage.Delta) error {
	s.commits.Add(1)
	if err := before(s.onCommit); err != nil {
		return err
	}
	return s.Store.Commit(ctx, d)
}

func (s *spy) Destroy(ctx context.Context, l storage.Locator, d storage.Digest) error {
	s.destroys.Add(1)
	if err := before(s.onDestroy); err != nil {
		return err
	}
	return s.Store.Destroy(ctx, l, d)
}

func (s *spy) List(ctx context.Context, user string, lim storage.Limits) ([]storage.Entry, error) {
	if err := before(s.onUser); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, user, lim)
}

func (s *spy) Revoke(ctx context.Context, user string, match func(storage.Locator) bool) (int, error) {
	if err := before(s.onUser); err != nil {
		return 0, err
	}
	return s.Store.Revoke(ctx, user, match)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
