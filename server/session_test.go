package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/memstore"
	sessionstore "github.com/lazyreq/lazyreq/session/redisstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

var (
	visits       = session.NewCounter("visits")
	plentyPolicy = ratelimit.NewPolicy("plenty", ratelimit.ByIP(), ratelimit.PerMinute(1<<40))
)

// brokenSessions is a store whose saves can be made to fail.
type brokenSessions struct {
	session.Store
	broken atomic.Bool
}

func (b *brokenSessions) Commit(ctx context.Context, d storage.Delta) error {
	if b.broken.Load() {
		return errSave
	}
	return b.Store.Commit(ctx, d)
}

// backend contains the stores of a server.
type backend struct {
	sessions session.Store
	counters ratelimit.Store
	writes   *atomic.Int64 // what went out to Redis; nil in memory
	redis    *testhost.Redis
}

func inMemory(t *testing.T) backend {
	m, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	return backend{sessions: m}
}

func onRedis(t *testing.T) backend {
	s := testhost.StartRedis(t)
	writes := new(atomic.Int64)
	client := s.Client(func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &countedConn{conn, writes}, err
		}
	})
	sessions, err := sessionstore.New(client, sessionstore.Options{Timeout: 10 * time.Second})
	require.NoError(t, err)
	counters, err := ratestore.New(client, ratestore.Options{Timeout: 10 * time.Second})
	require.NoError(t, err)
	return backend{sessions, counters, writes, s}
}

// countedConn counts its writes. A write is one packet or more.
type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// newStored returns a server that has the stores of b and plentyPolicy.
func newStored(t *testing.T, b backend) (*server.Server, *logs) {
	return newServer(t, server.Options{
		Session: session.Options{Cookie: session.Cookie{Insecure: true}}, SessionStore: b.sessions,
		RateLimits:     []*ratelimit.Policy{plentyPolicy},
		RateLimitStore: b.counters,
	})
}

// login makes a session and returns its cookie.
func login(t *testing.T, srv *server.Server) *http.Cookie {
	srv.HandleFunc("POST /login", func(w http.ResponseWriter, req *server.Request) error {
		return req.Session().Set("user", "ada")
	})
	res := ask(srv, "POST", "/login")
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Len(t, res.Cookies(), 1)
	return res.Cookies()[0]
}

// slowSessions is a store that answers after 50 ms.
type slowSessions struct{ session.Store }

func (s slowSessions) Load(ctx context.Context, l storage.Locator, d storage.Digest, lim storage.Limits) (storage.Record, error) {
	select {
	case <-time.After(50 * time.Millisecond):
		return s.Store.Load(ctx, l, d, lim)
	case <-ctx.Done():
		return storage.Record{}, context.Cause(ctx)
	}
}

// If a request has loaded the session and writes to it while another request logs out, the write fails, and the
// session does not come back.
func TestWriteThatLogoutOvertookRevivesNothing(t *testing.T) {
	for name, open := range map[string]func(*testing.T) backend{"memory": inMemory, "redis": onRedis} {
		t.Run(name, func(t *testing.T) {
			srv, _ := newStored(t, open(t))
			begun, goOn := make(chan bool), make(chan bool)
			srv.HandleFunc("POST /slow", func(w http.ResponseWriter, req *server.Request) error {
				if err := req.Session().Set("late", true); err != nil {
					return err
				}
				begun <- true
				<-goOn
				return nil
			})
			srv.HandleFunc("POST /logout", func(w http.ResponseWriter, req *server.Request) error {
				return req.Session().Destroy()
			})
			srv.HandleFunc("GET /exists", func(w http.ResponseWriter, req *server.Request) error {
				exists, err := req.Session().Exists()
				if err != nil {
					return err
				}
				return writeText(w, exists)
			})
			cookie := login(t, srv)
			require.Equal(t, "true", askAs(srv, cookie, "GET", "/exists").body)
			slow := make(chan answer, 1)
			go func() { slow <- askAs(srv, cookie, "POST", "/slow") }()
			<-begun
			require.Equal(t, http.StatusOK, askAs(srv, cookie, "POST", "/logout").StatusCode)
			goOn <- true
			late := <-slow
			require.Equal(t, http.StatusConflict, late.StatusCode, "the write is lost, and that is said")
			require.Empty(t, late.Cookies())
			require.Equal(t, "false", askAs(srv, cookie, "GET", "/exists").body)
		})
	}
}

// TestWritesOfConcurrentRequestsAreAllKept checks that no request overwrites what another has written to the session.
func TestWritesOfConcurrentRequestsAreAllKept(t *testing.T) {
	for name, open := range map[string]func(*testing.T) backend{"memory": inMemory, "redis": onRedis} {
		t.Run(name, func(t *testing.T) {
			srv, logged := newStored(t, open(t))
			srv.HandleFunc("POST /field/{name}", func(_ http.ResponseWriter, req *server.Request) error {
				return errors.Join(req.Session().Set(req.PathValue("name"), true), visits.Add(req, 1))
			})
			srv.HandleFunc("GET /fields", func(w http.ResponseWriter, req *server.Request) error {
				n := 0
				for i := range 1000 {
					v, err := req.Session().Get(fmt.Sprint(i))
					if err != nil {
						return err
					}
					if v == true {
						n++
					}
				}
				added, err := visits.Get(req)
				return errors.Join(err, writeText(w, n, added))
			})
			cookie := login(t, srv)
			concurrently(1000, func(i int) {
				if res := askAs(srv, cookie, "POST", fmt.Sprint("/field/", i)); res.StatusCode != http.StatusOK {
					t.Errorf("field %d: %d %s", i, res.StatusCode, res.body)
				}
			})
			require.Equal(t, "1000 1000", askAs(srv, cookie, "GET", "/fields").body)
			require.Empty(t, logged.at("ERROR"))
		})
	}
}

// heldSessions is a store that calls hold before it saves or ends a session.
type heldSessions struct {
	session.Store
	hold atomic.Pointer[func()]
}

func (s *heldSessions) wait() {
	if hold := s.hold.Load(); hold != nil {
		(*hold)()
	}
}

func (s *heldSessions) Commit(ctx context.Context, d storage.Delta) error {
	s.wait()
	return s.Store.Commit(ctx, d)
}

func (s *heldSessions) Destroy(ctx context.Context, l storage.Locator, d storage.Digest) error {
	s.wait()
	return s.Store.Destroy(ctx, l, d)
}

// leaving is a server whose client leaves while a handler uses the session.
type leaving struct {
	*server.Server
	logs  *logs
	store *heldSessions
	own   *http.Cookie
}

func newLeaving(t *testing.T) *leaving {
	b := inMemory(t)
	s := &leaving{store: &heldSessions{Store: b.sessions}}
	b.sessions = s.store
	s.Server, s.logs = newStored(t, b)
	s.HandleFunc("POST /login", func(_ http.ResponseWriter, req *server.Request) error { return req.Session().Bind("ada") })
	s.HandleFunc("GET /visits", func(w http.ResponseWriter, req *server.Request) error {
		there, err := req.Session().Exists()
		if err != nil {
			return err
		}
		n, err := visits.Get(req.Context())
		fmt.Fprint(w, there, n)
		return err
	})
	s.own = ask(s, "POST", "/login").Cookies()[0]
	return s
}

// serve runs act in a handler whose client leaves. If late is set, the client leaves during the store's call, and
// otherwise before act.
func (s *leaving) serve(t *testing.T, act func(session.Session) error, loaded, late bool) {
	began, acted := make(chan struct{}), make(chan error, 1)
	s.HandleFunc("POST /act", func(w http.ResponseWriter, req *server.Request) error {
		if loaded {
			if there, err := req.Session().Exists(); err != nil || !there {
				t.Error(there, err)
			}
		}
		hold := func() { <-req.Context().Done() }
		if close(began); late {
			s.store.hold.Store(&hold)
		} else {
			hold()
		}
		err := act(req.Session())
		w.WriteHeader(http.StatusNoContent)
		s.store.hold.Store(nil)
		acted <- err
		return err
	})
	url, c := listen(t, s)
	r := httptest.NewRequest("POST", url+"/act", nil)
	r.AddCookie(s.own)
	leave(t, c, r, began)
	require.NoError(t, <-acted)
	require.Empty(t, s.logs.at("ERROR"))
}

// A client that logs out and closes the page is logged out, even if the session was not loaded by then. What a
// handler has written is saved.
func TestDisconnectDoesNotCancelTheSession(t *testing.T) {
	for name, tt := range map[string]struct {
		act  func(session.Session) error
		want string // visits shows
	}{
		"Destroy": {session.Session.Destroy, "false 0"},
		"write":   {func(s session.Session) error { return s.Set("visits", 7) }, "true 7"},
	} {
		for when, how := range map[string]struct{ loaded, late bool }{
			"before it is loaded": {false, false},
			"before":              {true, false},
			"meanwhile":           {true, true},
		} {
			t.Run(name+", "+when, func(t *testing.T) {
				s := newLeaving(t)
				if name == "write" && !how.loaded {
					return
				}
				s.serve(t, tt.act, how.loaded, how.late)
				require.Equal(t, tt.want, askAs(s, s.own, "GET", "/visits").body)
			})
		}
	}
}
