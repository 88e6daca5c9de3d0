package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/servertest"
	"github.com/lazyreq/lazyreq/session"
)

// role is a requirement of an application.
type role string

func (r role) Start(ctx context.Context) error { return account.Start(ctx) }
func (r role) Require(ctx context.Context) error {
	a, err := account.Get(ctx)
	if err == nil && a != string(r) {
		err = server.Errorf(http.StatusForbidden, "Only for %s.", string(r))
	}
	return err
}

// steps records the order of events.
type steps struct {
	mu   sync.Mutex
	list []string
}

func (s *steps) add(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, step)
}

// taken returns and removes the recorded steps.
func (s *steps) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list
}

// middleware returns a middleware that records name.
func (s *steps) middleware(name string) func(http.Handler) http.Handler {
	return middleware(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		s.add(name)
		next.ServeHTTP(w, r)
	})
}

// property provides a property whose Resolve function takes d and returns err.
func (s *steps) property(srv *server.Server, name string, d time.Duration, err error) reqctx.Key[string] {
	key := reqctx.NewKey[string](name)
	reqctx.Provide(srv.Registry(), key, reqctx.Prop[string]{Vary: []string{"X-" + name}, Resolve: func(ctx context.Context) (string, error) {
		s.add("begin " + name)
		if d == 0 {
			return name, err
		}
		select {
		case <-time.After(d):
			return name, err
		case <-ctx.Done():
			s.add("cancel " + name)
			return "", context.Cause(ctx)
		}
	}})
	return key
}

func (s *steps) handler(http.ResponseWriter, *server.Request) error { s.add("handler"); return nil }

func TestRequire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, l := newServer(t, server.Options{})
		var s steps
		fast, slow := s.property(srv, "fast", time.Second, nil), s.property(srv, "slow", 2*time.Second, nil)
		refused := s.property(srv, "refused", time.Second, server.Errorf(http.StatusPaymentRequired, "Pay."))
		denied := s.property(srv, "denied", 3*time.Second, server.Errorf(http.StatusTooManyRequests, "Wait."))
		broken := s.property(srv, "broken", time.Second, errSave)
		hangs := s.property(srv, "hangs", time.Hour, nil)
		type options = []server.RouteOption
		for name, tt := range map[string]struct {
			options options
			status  int
			seconds time.Duration
			steps   string
		}{
			"nothing":        {options{server.Require(), {}}, 200, 0, "handler"},
			"one":            {options{server.Require(fast)}, 200, 1, "begin fast, handler"},
			"together":       {options{server.Require(slow, fast)}, 200, 2, "begin fast, begin slow, handler"},
			"in-turn":        {options{server.Require(slow), server.Require(fast)}, 200, 3, "begin slow, begin fast, handler"},
			"twice":          {options{server.Require(fast, fast), server.Require(fast)}, 200, 1, "begin fast, handler"},
			"prefetched":     {options{server.Require(fast), server.Prefetch(slow), server.Require(slow)}, 200, 2, "begin fast, begin slow, handler"},
			"in-vain":        {options{server.Require(refused), server.Prefetch(slow)}, 402, 1, "begin refused, begin slow, cancel slow"},
			"last-fails":     {options{server.Require(fast, refused)}, 402, 1, "begin fast, begin refused"},
			"first-fails":    {options{server.Require(refused), server.Require(fast)}, 402, 1, "begin refused"},
			"slow-but-first": {options{server.Require(denied, refused)}, 429, 3, "begin denied, begin refused"},
			"fast-and-first": {options{server.Require(refused, denied)}, 402, 1, "begin denied, begin refused, cancel denied"},
			"last-hangs":     {options{server.Require(refused, hangs)}, 402, 1, "begin hangs, begin refused, cancel hangs"},
			"no-problem":     {options{server.Require(broken)}, 500, 1, "begin broken"},
		} {
			srv.HandleFunc("GET /"+name, s.handler, tt.options...)
			srv.Handle("POST /"+name, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { s.add("handler") }), tt.options...)
			for _, method := range []string{"GET", "HEAD", "POST"} {
				l.lines = nil
				began := time.Now()
				res := ask(srv, method, "/"+name)
				require.Equal(t, tt.status, res.StatusCode, name)
				require.Equal(t, tt.seconds*time.Second, time.Since(began), name)
				require.ElementsMatch(t, strings.Split(tt.steps, ", "), s.taken(), name)
				require.Equal(t, tt.status == 500, len(l.at("ERROR")) == 1, name)
			}
		}
	})
}

// The requirements of a request are ordinary properties: the response varies with them, and a handler reads them
// again.
func TestRequiredPropertiesAreRead(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	calls := provideBoth(srv)
	srv.HandleFunc("GET /both", readBoth, server.Require(account, flags))
	srv.HandleFunc("GET /unread", nothing, server.Require(account, role("ada's")))
	srv.HandleFunc("GET /forbidden", nothing, server.Require(role("bob's")))
	for path, want := range map[string]struct {
		status int
		body   string
		calls  int32
	}{
		"/both":      {200, "ada'snew", 2},
		"/unread":    {200, "", 1},
		"/forbidden": {403, `{"status":403,"title":"Forbidden","detail":"Only for bob's."}`, 1},
	} {
		calls.Store(0)
		res := ask(srv, "GET", path)
		require.Equal(t, want.status, res.StatusCode)
		if want.status == 200 {
			require.Equal(t, want.body, res.body)
		} else {
			require.JSONEq(t, want.body, res.body)
		}
		require.Equal(t, []string{"X-Tenant"}, res.Header.Values("Vary"), path)
		require.Equal(t, want.calls, calls.Load(), path)
	}
}

func TestRequireLogin(t *testing.T) {
	b := inMemory(t)
	srv, l := newStored(t, b)
	srv.HandleFunc("GET /user", func(w http.ResponseWriter, req *server.Request) error {
		user, err := session.RequireUser(req.Context())
		return errors.Join(err, server.WriteJSON(w, 200, user))
	}, server.Require(session.LoggedIn))
	srv.HandleFunc("GET /visit", nothing, server.Require(session.Loaded))
	srv.HandleFunc("POST /login", func(_ http.ResponseWriter, req *server.Request) error { return req.Session().Bind("ada") })
	for path, status := range map[string]int{"/user": 401, "/visit": 200} {
		res := ask(srv, "GET", path)
		require.Equal(t, status, res.StatusCode)
		require.Equal(t, []string{"Cookie"}, res.Header.Values("Vary"))
	}
	cookie := ask(srv, "POST", "/login").Cookies()[0]
	require.Equal(t, "\"ada\"\n", askAs(srv, cookie, "GET", "/user").body)
	require.Empty(t, l.at(""))
}

func TestRequirementThatPanics(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	provideBoth(srv)
	reqctx.Provide(srv.Registry(), panicking, reqctx.Prop[int]{Resolve: func(context.Context) (int, error) { panic("oh") }})
	srv.HandleFunc("GET /first", nothing, server.Require(panicking, account))
	srv.HandleFunc("GET /second", nothing, server.Require(account, panicking))
	srv.HandleFunc("GET /behind", nothing, server.Require(role("bob's"), panicking))
	for path, want := range map[string]int{"/first": 500, "/second": 500, "/behind": 403} {
		l.lines = nil
		require.Equal(t, want, ask(srv, "GET", path).StatusCode, path)
		require.Equal(t, "panicking", l.only(t)["property"], path)
	}
}

func TestRequirementThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, l := newServer(t, server.Options{})
		timed := reqctx.NewKey[int]("timed")
		reqctx.Provide(srv.Registry(), timed, reqctx.Prop[int]{Timeout: time.Second, Resolve: func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}})
		var s steps
		hangs, refused := s.property(srv, "hangs", time.Hour, nil), s.property(srv, "refused", 0, server.Errorf(429, "Wait."))
		srv.HandleFunc("GET /timed", s.handler, server.Require(timed))
		srv.HandleFunc("GET /hangs", s.handler, server.Require(hangs, refused))
		require.Equal(t, 503, ask(srv, "GET", "/timed").StatusCode)
		require.Len(t, l.at("ERROR"), 1)

		for name, tt := range map[string]struct {
			end   func(context.Context) (context.Context, context.CancelFunc)
			level string
		}{
			"a deadline of the server": {func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Minute)
			}, "ERROR"},
			"a client that leaves": {func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Minute, cancel)
				return ctx, cancel
			}, "DEBUG"},
		} {
			l.lines = nil
			began := time.Now()
			ctx, cancel := tt.end(t.Context())
			rec := send(srv, httptest.NewRequestWithContext(ctx, "GET", "/hangs", nil))
			cancel()
			require.Contains(t, []int{500, 503}, rec.StatusCode, name)
			require.Equal(t, time.Minute, time.Since(began), name)
			require.Len(t, l.at(tt.level), 1, name)
			require.Len(t, l.at(""), 1, name)
		}
		require.NotContains(t, s.taken(), "handler")
	})
}

// A response does not wait for running prefetches, and a denial does not wait for later requirements. They are
// cancelled, and Shutdown waits for them. In another http.Server, the response waits for them, too.
func TestPropertiesThatStillRunAtTheEnd(t *testing.T) {
	for _, own := range []bool{true, false} {
		for _, heeds := range []bool{true, false} {
			for status, option := range map[int]server.RouteOption{200: server.Prefetch(stuck), 429: server.Require(denial{}, stuck)} {
				t.Run(fmt.Sprintf("%d, own listener %v, heeds its context %v", status, own, heeds), func(t *testing.T) {
					srv, l := newServer(t, server.Options{})
					canceled, release := provideStuck(srv, heeds)
					srv.HandleFunc("GET /", nothing, option)
					answered := askOn(t, srv, own)
					require.ErrorIs(t, <-canceled, context.Canceled)
					if !own && !heeds {
						requireNone(t, answered)
						close(release)
					}
					require.Equal(t, status, (<-answered).StatusCode)
					if own && !heeds {
						ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
						defer cancel()
						require.ErrorIs(t, srv.Shutdown(ctx), context.DeadlineExceeded, "it waits")
						close(release)
					}
					require.NoError(t, srv.Shutdown(t.Context()))
					require.Empty(t, l.at(""))
				})
			}
		}
	}
}

// denial is a requirement that always fails.
type denial struct{}

func (denial) Start(context.Context) error   { return nil }
func (denial) Require(context.Context) error { return server.Errorf(429, "Wait.") }

func TestAPresetMeetsARequirement(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	calls := provideBoth(srv)
	srv.Use(middleware(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		require.NoError(t, flags.Set(r.Context(), "set"))
		next.ServeHTTP(w, r)
	}))
	srv.HandleFunc("GET /both", readBoth, server.Require(role("preset"), account, flags))
	res := servertest.Do(t, srv, servertest.Preset(httptest.NewRequest("GET", "/both", nil), account, "preset"))
	require.Equal(t, "presetset", res.Body.String())
	require.Zero(t, calls.Load())
}

func TestUnknownRequirementsPanic(t *testing.T) {
	srv, _ := newStored(t, inMemory(t))
	for _, option := range []server.RouteOption{
		server.Require(session.Loaded, reqctx.NewKey[int]("unknown")), server.Require(reqctx.Key[int]{}), server.Require(role("ada's")),
		server.Prefetch(reqctx.NewKey[int]("session")), server.Prefetch(session.Loaded, account),
	} {
		err := panicOf(func() { srv.HandleFunc("GET /x", nothing, server.Require(session.Loaded), option) })
		require.ErrorIs(t, err, reqctx.ErrNoProperty)
		require.ErrorContains(t, err, `server: route "GET /x": reqctx: no such property: "`)
		require.ErrorIs(t, panicOf(func() { srv.Handle("GET /x", http.NotFoundHandler(), option) }), reqctx.ErrNoProperty)
	}
	srv.HandleFunc("GET /x", nothing) // none of them was registered
	require.PanicsWithValue(t, "server: Require: item 1 is nil", func() { server.Require(session.Loaded, nil) })
	require.PanicsWithValue(t, "server: Prefetch: item 0 is nil", func() { server.Prefetch(nil) })
	require.PanicsWithValue(t, "server: Require: item 0 is nil", func() { server.Requiring((*ratelimitLike)(nil)) })
}

// ratelimitLike is a requirement whose pointer may be nil, as that of a policy.
type ratelimitLike struct{ denial }

func TestRequirementsAllocateNoMoreThanResolve(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	for _, key := range []reqctx.Key[string]{account, flags} {
		reqctx.Provide(srv.Registry(), key, reqctx.Prop[string]{Resolve: func(context.Context) (string, error) { return "", nil }})
	}
	srv.HandleFunc("GET /require", nothing, server.Require(account, flags))
	srv.HandleFunc("GET /resolve", func(_ http.ResponseWriter, req *server.Request) error { return req.Resolve("account", "flags") })
	allocs := func(path string) float64 {
		w, r := nullWriter{http.Header{}}, httptest.NewRequest("GET", path, nil)
		return testing.AllocsPerRun(500, func() { srv.ServeHTTP(w, r) })
	}
	require.LessOrEqual(t, allocs("/require"), allocs("/resolve"))
}
