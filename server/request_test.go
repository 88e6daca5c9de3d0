package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

func policy(tb testing.TB, name string) *ratelimit.Policy {
	rule := ratelimit.PerMinute(3)
	return &ratelimit.Policy{Name: name, Rules: []ratelimit.Rule{rule}, Key: ratelimit.ByIP()}
}

// A Request has all fields and methods of the standard request.
func TestRequestIsTheStandardRequest(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	srv.HandleFunc("POST /users/{id}", func(w http.ResponseWriter, req *server.Request) error {
		require.Equal(t, "7", req.PathValue("id"))
		require.Equal(t, "yes", req.Header.Get("X-Test"))
		require.Equal(t, "q", req.FormValue("q"))
		require.Equal(t, "POST /users/{id}", req.Pattern)
		require.Same(t, req.Request, reqctx.From(req.Context()).Request())
		id, err := req.Params().Path().String("id")
		require.NoError(t, err)
		require.Equal(t, "7", id)
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	r := httptest.NewRequest("POST", "/users/7?q=q", strings.NewReader("a=b"))
	r.Header.Set("X-Test", "yes")
	rec := send(srv, r)
	require.Equal(t, http.StatusNoContent, rec.StatusCode)
	require.Empty(t, r.Pattern, "the caller's request is not touched")
}

func TestReservedNamesHaveTheirTypes(t *testing.T) {
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{policy(t, "p")}})
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		for name, want := range map[string]any{
			"params":    req.Params(),
			"ratelimit": req.RateLimit(),
		} {
			got, err := req.Get(name)
			require.NoError(t, err, name)
			require.IsType(t, want, got, name)
			require.Equal(t, want, got, name)
		}
		loaded, err := req.Get("session")
		require.NoError(t, err)
		require.IsType(t, req.Session(), loaded)
		require.IsType(t, (*params.Params)(nil), req.Params())
		_, err = req.Get("nobody")
		require.ErrorIs(t, err, reqctx.ErrNoProperty)
		require.ErrorIs(t, req.Set("nobody", 1), reqctx.ErrNoProperty)
		require.ErrorIs(t, req.Resolve("params", "nobody"), reqctx.ErrNoProperty)
		return nil
	})
	require.Equal(t, 200, ask(srv, "GET", "/").StatusCode)
}

func TestLimitWithoutPolicy(t *testing.T) {
	for want, policies := range map[string][]*ratelimit.Policy{
		`no such property: "ratelimit"`:                nil,
		"the request has several policies (one, two):": {policy(t, "one"), policy(t, "two")},
	} {
		srv, l := newServer(t, server.Options{RateLimits: policies})
		srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
			_, err := req.RateLimit().Take()
			require.ErrorIs(t, err, reqctx.ErrNoProperty)
			return req.RateLimit().Require()
		})
		requireProblem(t, 500, internalError, ask(srv, "GET", "/"))
		require.Contains(t, l.only(t)["error"], want)
	}
}

// TestAServerCopiesItsPolicies changes a policy that a server has.
func TestAServerCopiesItsPolicies(t *testing.T) {
	p := policy(t, "p")
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{p}})
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error { return p.Require(req.Context()) })
	p.Rules[0], p.Key = ratelimit.PerMinute(1), nil
	for i := range 4 {
		require.Equal(t, map[bool]int{true: 200, false: 429}[i < 3], ask(srv, "GET", "/").StatusCode)
	}
}

// After the handler has returned, a Request returns errors.
func TestRequestIsValidUntilTheHandlerReturns(t *testing.T) {
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{policy(t, "p")}})
	provideMark(srv)
	var kept *server.Request
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error { kept = req; return nil })
	ask(srv, "GET", "/")
	_, err := kept.Get("mark")
	require.ErrorIs(t, err, reqctx.ErrFinished)
	require.ErrorIs(t, kept.Set("mark", "x"), reqctx.ErrFinished)
	require.ErrorIs(t, kept.Resolve("mark"), reqctx.ErrFinished)
	_, err = kept.Params().String("q")
	require.ErrorIs(t, err, reqctx.ErrFinished)
	_, err = kept.RateLimit().Take()
	require.ErrorIs(t, err, reqctx.ErrFinished)
	_, err = kept.Session().Get("x")
	require.ErrorIs(t, err, reqctx.ErrFinished)
	called := false
	kept.OnClose(func() error { called = true; return nil })
	require.True(t, called)
}

var _ context.Context = (*server.Request)(nil)

func TestRequestIsAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := newServer(t, server.Options{})
		calls := provideBoth(srv)
		errGone := errors.New("gone")
		outer, cancel := context.WithCancelCause(t.Context())
		type key struct{}
		srv.Use(middleware(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, "middleware's")))
		}))
		srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
			for range 2 {
				v, err := account.Get(req)
				require.NoError(t, err)
				require.Equal(t, "ada's", v)
			}
			require.Equal(t, int32(1), calls.Load())
			require.Same(t, reqctx.From(req.Context()), reqctx.From(req))
			require.Equal(t, "middleware's", req.Value(key{}))

			ctx, stop := context.WithTimeout(req, time.Minute)
			defer stop()
			v, err := flags.Get(ctx)
			require.NoError(t, err)
			require.Equal(t, "new", v)
			deadline, ok := req.Deadline()
			require.True(t, ok)
			require.WithinDuration(t, time.Now(), deadline, time.Hour)

			called := make(chan struct{})
			context.AfterFunc(req, func() { close(called) })
			require.NoError(t, req.Err())
			cancel(errGone)
			<-called
			<-ctx.Done()
			<-req.Done()
			require.ErrorIs(t, req.Err(), context.Canceled)
			require.Equal(t, errGone, context.Cause(req))

			req.Request = req.WithContext(context.WithValue(req, key{}, "handler's"))
			require.Equal(t, "handler's", req.Context().Value(key{}))
			require.Equal(t, "middleware's", req.Value(key{}), "a context that contains itself would overflow the stack")
			return nil
		})
		bounded, stop := context.WithTimeout(outer, time.Hour)
		defer stop()
		send(srv, httptest.NewRequestWithContext(bounded, "GET", "/", nil))
	})
}

func TestHitOfARequestDoesNotAllocate(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	provideMark(srv)
	srv.HandleFunc("GET /", marked(func(_ http.ResponseWriter, req *server.Request) error {
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = mark.Get(req) }))
		return nil
	}))
	require.Equal(t, 200, ask(srv, "GET", "/").StatusCode)
}

var (
	slow   = reqctx.NewKey[int]("slow")
	broken = reqctx.NewKey[int]("broken")
	odd    = reqctx.NewKey[int]("a b,c;d=é\"(x)/[~!")
	given  = reqctx.NewKey[int]("given")
	unused = reqctx.NewKey[int]("unused")
)

func provideTimed(srv *server.Server) {
	takes := func(d time.Duration, err error) reqctx.Prop[int] {
		return reqctx.Prop[int]{Resolve: func(context.Context) (int, error) { <-time.After(d); return 0, err }}
	}
	reqctx.Provide(srv.Registry(), slow, takes(1500*time.Microsecond, nil))
	reqctx.Provide(srv.Registry(), broken, takes(2*time.Millisecond, errors.New("broken")))
	reqctx.Provide(srv.Registry(), odd, takes(time.Second, nil))
	reqctx.Provide(srv.Registry(), given, takes(time.Second, nil))
	reqctx.Provide(srv.Registry(), unused, takes(time.Second, nil))
}

func TestServerTiming(t *testing.T) {
	read := func(req *server.Request, keys ...reqctx.Key[int]) {
		for _, k := range keys {
			_, _ = k.Get(req.Context())
		}
	}
	for name, tt := range map[string]struct {
		h    server.HandlerFunc
		want []string
	}{
		"in the order of Provide": {
			func(_ http.ResponseWriter, req *server.Request) error { read(req, broken, slow); return nil },
			[]string{`slow;dur=1.5, broken;dur=2;desc="failed"`},
		},
		"names are made tokens": {
			func(_ http.ResponseWriter, req *server.Request) error { read(req, odd); return nil },
			[]string{`a_b_c_d____x___~!;dur=1000`},
		},
		"on a problem": {
			func(_ http.ResponseWriter, req *server.Request) error { read(req, slow); return server.Errorf(400, "") },
			[]string{`slow;dur=1.5`},
		},
		"only before the header": {
			func(w http.ResponseWriter, req *server.Request) error {
				read(req, slow)
				_, err := io.WriteString(w, "x")
				read(req, odd)
				return err
			},
			[]string{`slow;dur=1.5`},
		},
		"beside the handler's own": {
			func(w http.ResponseWriter, req *server.Request) error {
				w.Header().Set("Server-Timing", "cache")
				read(req, slow)
				return nil
			},
			[]string{"cache", `slow;dur=1.5`},
		},
		"what was set or is a handle took no time": {
			func(_ http.ResponseWriter, req *server.Request) error {
				req.Params()
				req.Session()
				return given.Set(req.Context(), 1)
			},
			nil,
		},
		"once, although the header is tried twice": {
			func(w http.ResponseWriter, req *server.Request) error {
				read(req, slow)
				_, _, err := http.NewResponseController(w).Hijack()
				require.ErrorIs(t, err, http.ErrNotSupported)
				return server.Errorf(400, "")
			},
			[]string{`slow;dur=1.5`},
		},
		"nothing": {func(http.ResponseWriter, *server.Request) error { return nil }, nil},
	} {
		for _, on := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv, _ := newServer(t, server.Options{ServerTiming: on})
					provideTimed(srv)
					srv.HandleFunc("GET /", tt.h)
					got := ask(srv, "GET", "/").Header.Values("Server-Timing")
					if on {
						require.Equal(t, tt.want, got)
					} else {
						require.NotContains(t, strings.Join(got, ","), "dur=")
					}
				})
			})
		}
	}
}
