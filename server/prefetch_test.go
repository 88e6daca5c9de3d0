package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/racing"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/servertest"
	"github.com/lazyreq/lazyreq/session"
)

var (
	account = reqctx.NewKey[string]("account")
	flags   = reqctx.NewKey[string]("flags")
)

// provideBoth provides account and flags, 2 ms each, and returns how often they were resolved.
func provideBoth(srv *server.Server) (calls *atomic.Int32) {
	calls = new(atomic.Int32)
	takes := func(v string) reqctx.Prop[string] {
		return reqctx.Prop[string]{Prefetch: true, Vary: []string{"X-Tenant"}, Resolve: func(context.Context) (string, error) {
			calls.Add(1)
			<-time.After(2 * time.Millisecond)
			return v, nil
		}}
	}
	reqctx.Provide(srv.Registry(), account, takes("ada's"))
	reqctx.Provide(srv.Registry(), flags, takes("new"))
	return calls
}

// readBoth reads them one after another.
func readBoth(w http.ResponseWriter, req *server.Request) error { return readBothOf(w, req.Context()) }

func readBothOf(w http.ResponseWriter, ctx context.Context) error {
	a, err := account.Get(ctx)
	if err != nil {
		return err
	}
	f, err := flags.Get(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(w, a, f)
	return err
}

func TestPrefetchOfARoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inMemory(t)
		b.sessions = slowSessions{b.sessions}
		srv, l := newStored(t, b)
		provideBoth(srv)
		cookie := login(t, srv)
		h := func(w http.ResponseWriter, req *server.Request) error {
			if _, err := req.Session().Get("user"); err != nil {
				return err
			}
			return readBothOf(w, req.Context())
		}
		standard := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, err := session.From(r.Context())
			require.NoError(t, err)
			_, err = user.Get("user")
			require.NoError(t, err)
			require.NoError(t, readBothOf(w, r.Context()))
		})
		srv.HandleFunc("GET /lazy", h)
		srv.HandleFunc("GET /early", h, server.Prefetch("session", account), server.Prefetch("flags"))
		srv.Handle("GET /standard", standard, server.Prefetch("session", account, flags))
		for path, want := range map[string]time.Duration{"/lazy": 54 * time.Millisecond, "/early": 50 * time.Millisecond, "/standard": 50 * time.Millisecond} {
			began := time.Now()
			res := askAs(srv, cookie, "GET", path)
			require.Equal(t, "ada'snew", res.body)
			require.ElementsMatch(t, []string{"Cookie", "X-Tenant"}, res.Header.Values("Vary"))
			require.Equal(t, want, time.Since(began), path)
		}
		require.Empty(t, l.at("ERROR"))
	})
}

func TestWhatIsPrefetchedAndNotReadChangesNoResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inMemory(t)
		srv, l := newStored(t, b)
		provideBoth(srv)
		cookie := login(t, srv)
		h := func(w http.ResponseWriter, _ *server.Request) error {
			<-time.After(time.Second)
			_, err := fmt.Fprint(w, "hello")
			return err
		}
		srv.HandleFunc("GET /lazy", h)
		srv.HandleFunc("GET /early", h, server.Prefetch("session", account, flags))
		lazy, early := askAs(srv, cookie, "GET", "/lazy"), askAs(srv, cookie, "GET", "/early")
		require.Equal(t, lazy.Header, early.Header)
		require.Equal(t, lazy.body, early.body)
		require.Empty(t, l.at(""))

		r := httptest.NewRequest("GET", "/early", nil)
		servertest.Do(t, srv, r).RequireResolved(t)
	})
}

func TestPrefetchIsCheckedWithTheRoute(t *testing.T) {
	srv, _ := newStored(t, inMemory(t))
	provideBoth(srv)
	unsafe := reqctx.NewKey[int]("charge")
	reqctx.Provide(srv.Registry(), unsafe, reqctx.Prop[int]{Resolve: func(context.Context) (int, error) { return 0, nil }})
	h := func(http.ResponseWriter, *server.Request) error { return nil }
	for _, p := range []any{unsafe, "charge", "ratelimit", "ratelimit.plenty", "params"} {
		err := panicOf(func() { srv.HandleFunc("GET /x", h, server.Prefetch("session", p)) })
		require.ErrorIs(t, err, reqctx.ErrNoPrefetch, p)
		require.ErrorContains(t, err, `server: route "GET /x": Prefetch: `)
	}
	for _, p := range []any{"", "unknown", reqctx.NewKey[int]("unknown"), reqctx.Key[int]{}, "params.body", "ratelimit.plenty.take"} {
		err := panicOf(func() { srv.Handle("GET /x", http.NotFoundHandler(), server.Prefetch(p)) })
		require.ErrorIs(t, err, reqctx.ErrNoProperty, p)
	}
	err := panicOf(func() { srv.HandleFunc("GET /x", h, server.Prefetch(7)) })
	require.EqualError(t, err, `server: route "GET /x": Prefetch of a int; want a name or a reqctx.Key`)
	srv.HandleFunc("GET /x", h, server.Prefetch(), server.RouteOption{}) // none of them was registered
}

// panicOf returns the error that fn panics with.
func panicOf(fn func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	fn()
	return nil
}

func TestOnlyRequestsThatReachTheHandlerPrefetch(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	calls := provideBoth(srv)
	srv.HandleFunc("GET /both", readBoth, server.Prefetch(account, flags))
	srv.HandleFunc("POST /both", readBoth, server.Prefetch(account, flags))
	srv.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Stop") == "" {
				next.ServeHTTP(w, r)
			}
		})
	})
	for _, tt := range []struct {
		method, target, header, value string
		status                        int
		calls                         int32
	}{
		{"GET", "/both", "", "", 200, 2},
		{"HEAD", "/both", "", "", 200, 2},
		{"GET", "/both", "X-Stop", "1", 200, 0},
		{"OPTIONS", "/both", "", "", 405, 0},
		{"GET", "/none", "", "", 404, 0},
		{"POST", "/both", "Origin", "https://evil.example", 403, 0},
	} {
		calls.Store(0)
		r := httptest.NewRequest(tt.method, tt.target, nil)
		r.Header.Set(tt.header, tt.value)
		rec := httptest.NewRecorder()
		srv.ServeHTTP(rec, r)
		require.Equal(t, tt.status, rec.Code, "%v", tt)
		require.Equal(t, tt.calls, calls.Load(), "%v", tt)
	}
}

func TestAPresetIsNotPrefetched(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	calls := provideBoth(srv)
	srv.HandleFunc("GET /both", readBoth, server.Prefetch(account, flags))
	r := servertest.Preset(servertest.Preset(httptest.NewRequest("GET", "/both", nil), account, "a"), flags, "f")
	res := servertest.Do(t, srv, r)
	require.Equal(t, "af", res.Body.String())
	require.Zero(t, calls.Load())
}

var (
	faulty    = reqctx.NewKey[int]("faulty")
	panicking = reqctx.NewKey[int]("panicking")
	stuck     = reqctx.NewKey[int]("stuck")
)

// unread keeps what was prefetched and not read in each request.
type unread struct {
	watcher
	infos chan map[string]reqctx.Info
}

func (u *unread) RequestEnd(ctx context.Context, _ server.RequestInfo) {
	infos := map[string]reqctx.Info{}
	for name, info := range reqctx.From(ctx).Props() {
		if info.Unread {
			infos[name] = info
		}
	}
	u.infos <- infos
}

// Nothing waits for a prefetched property that ignores the end of its context, on the server's
// listeners or another's, but for Shutdown.
func TestPrefetchedPropertiesFailAlone(t *testing.T) {
	listeners := map[string]func(testing.TB, *server.Server) (string, *http.Client){
		"itself":    listenItself,
		"in HTTP/1": func(tb testing.TB, s *server.Server) (string, *http.Client) { return protocols["HTTP/1"](tb, s) },
		"in HTTP/2": func(tb testing.TB, s *server.Server) (string, *http.Client) { return protocols["HTTP/2"](tb, s) },
	}
	for name, listen := range listeners {
		t.Run(name, func(t *testing.T) {
			u := &unread{infos: make(chan map[string]reqctx.Info, 1)}
			srv, l := newServer(t, server.Options{Observers: []server.Observer{u}})
			canceled, release := make(chan error, 1), make(chan struct{})
			reqctx.Provide(srv.Registry(), faulty, reqctx.Prop[int]{Prefetch: true, Resolve: func(context.Context) (int, error) {
				return 0, errors.New("broken")
			}})
			reqctx.Provide(srv.Registry(), panicking, reqctx.Prop[int]{Prefetch: true, Resolve: func(context.Context) (int, error) { panic("oh") }})
			reqctx.Provide(srv.Registry(), stuck, reqctx.Prop[int]{Prefetch: true, Resolve: func(ctx context.Context) (int, error) {
				<-ctx.Done()
				canceled <- ctx.Err()
				<-release
				return 0, ctx.Err()
			}})
			srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
				for { // until both have failed
					done := 0
					for _, info := range reqctx.From(req.Context()).Props() {
						if info.State == reqctx.Failed {
							done++
						}
					}
					if done == 2 {
						break
					}
				}
				_, err := fmt.Fprint(w, "hello")
				return err
			}, server.Prefetch(faulty, panicking, stuck))
			url, c := listen(t, srv)
			res, err := request(t, c, "GET", url)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, res.StatusCode)
			require.Equal(t, "hello", res.body)
			require.ErrorIs(t, <-canceled, context.Canceled)
			infos := <-u.infos
			require.Len(t, infos, 3)
			require.EqualError(t, infos["faulty"].Err, "broken")
			require.Equal(t, reqctx.Failed, infos["panicking"].State)
			require.Equal(t, reqctx.Resolving, infos["stuck"].State)

			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, srv.Shutdown(ctx), context.DeadlineExceeded, "it waits")
			close(release)
			require.NoError(t, srv.Shutdown(t.Context()))
			require.Empty(t, l.at("ERROR"))
			require.Len(t, l.at("WARN"), 1)
			require.Equal(t, "panicking", l.at("WARN")[0]["property"])
		})
	}
}

// That holds also if its time was over before the handler returned.
func TestAPrefetchThatTimedOutHoldsUpNoResponse(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	release := make(chan struct{})
	reqctx.Provide(srv.Registry(), stuck, reqctx.Prop[int]{Prefetch: true, Timeout: time.Millisecond, Resolve: func(context.Context) (int, error) {
		<-release
		return 0, nil
	}})
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		timedOut := false
		for !timedOut {
			for _, info := range reqctx.From(req.Context()).Props() {
				timedOut = timedOut || errors.Is(info.Err, context.DeadlineExceeded)
			}
		}
		return nil
	}, server.Prefetch(stuck))
	url, c := protocols["HTTP/1"](t, srv)
	res, err := request(t, c, "GET", url)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	close(release)
	require.NoError(t, srv.Shutdown(t.Context()))
}

func TestReadingAPrefetchedFailureIsTheHandlersError(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	reqctx.Provide(srv.Registry(), panicking, reqctx.Prop[int]{Prefetch: true, Resolve: func(context.Context) (int, error) { panic("oh") }})
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		_, err := panicking.Get(req.Context())
		return err
	}, server.Prefetch(panicking))
	require.Equal(t, http.StatusInternalServerError, ask(srv, "GET", "/").StatusCode)
	require.Equal(t, "panicking", l.only(t)["property"])
	require.Empty(t, l.at("WARN"))
}

func TestAPanicOfTheHandlerDuringAPrefetch(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	provideBoth(srv)
	srv.HandleFunc("GET /", func(http.ResponseWriter, *server.Request) error { panic("mine") }, server.Prefetch(account))
	require.Equal(t, http.StatusInternalServerError, ask(srv, "GET", "/").StatusCode)
	require.Equal(t, "mine", l.only(t)["panic"])
	require.NoError(t, srv.Shutdown(t.Context()))
}

func TestServerTimingLeavesOutWhatWasNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := newServer(t, server.Options{ServerTiming: true})
		provideBoth(srv)
		srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
			<-time.After(time.Second)
			_, err := account.Get(req.Context())
			return err
		}, server.Prefetch(account, flags))
		require.Equal(t, "account;dur=2", ask(srv, "GET", "/").Header.Get("Server-Timing"))
	})
}

func TestWhatIsPrefetchedSharesARoundTrip(t *testing.T) {
	b := onRedis(t)
	srv, _ := newStored(t, b)
	limiter, err := ratelimit.NewLimiter(b.counters, ratelimit.PerMinute(10))
	require.NoError(t, err)
	left := reqctx.NewKey[int64]("left")
	reqctx.Provide(srv.Registry(), left, reqctx.Prop[int64]{Prefetch: true, Resolve: func(ctx context.Context) (int64, error) {
		res, err := limiter.Peek(ctx, "ada", 1)
		return res.Remaining, err
	}})
	srv.HandleFunc("GET /both", func(w http.ResponseWriter, req *server.Request) error {
		user, err := req.Session().Get("user")
		if err != nil {
			return err
		}
		n, err := left.Get(req.Context())
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(w, user, n)
		return err
	}, server.Prefetch("session", left))
	cookie := login(t, srv)
	best := 0
	for began := time.Now(); best < 80 && time.Since(began) < 20*time.Second; {
		one := 0
		for range 100 {
			b.writes.Store(0)
			require.Equal(t, "ada10", askAs(srv, cookie, "GET", "/both").body)
			if b.writes.Load() == 1 {
				one++
			}
		}
		best = max(best, one)
	}
	t.Logf("two scripts in one write: %d of 100", best)
	if !racing.Enabled { // which delays goroutines apart
		require.GreaterOrEqual(t, best, 80)
	}
	require.Greater(t, best, 40)
}
