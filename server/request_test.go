package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

func policy(tb testing.TB, name string) *ratelimit.Policy {
	rule := ratelimit.PerMinute(3)
	return &ratelimit.Policy{Name: name, Rules: []ratelimit.Rule{rule}, Key: ratelimit.ByIP()}
}

// The standard request is all there.
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
	rec := httptest.NewRecorder()
	srv.ServeHTTP(rec, r)
	require.Equal(t, http.StatusNoContent, rec.Code)
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
			_, peeked := req.RateLimit().Peek()
			require.ErrorIs(t, peeked, reqctx.ErrNoProperty)
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

// A Request that is kept reports that its request is over.
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

func TestResolveIsParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := newServer(t, server.Options{})
		provideTimed(srv) // a second each
		srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
			return req.Resolve(odd.Name(), given.Name(), unused.Name())
		})
		began := time.Now()
		require.Equal(t, 200, ask(srv, "GET", "/").StatusCode)
		require.Equal(t, time.Second, time.Since(began))
	})
}

// A standard handler finds the properties in its context.
func TestStandardHandlerHasTheProperties(t *testing.T) {
	field := session.NewField[string]("standard")
	srv, _ := newServer(t, server.Options{Session: session.Options{Cookie: session.Cookie{Insecure: true}}})
	srv.Handle("GET /{name}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := session.From(r.Context())
		require.NoError(t, err)
		require.NoError(t, s.Set("standard", "x"))
		name, err := func() (string, error) {
			p, err := params.From(r.Context())
			require.NoError(t, err)
			return p.Path().String("name")
		}()
		require.NoError(t, err)
		_, _ = io.WriteString(w, name)
	}))
	srv.HandleFunc("GET /read", func(w http.ResponseWriter, req *server.Request) error {
		v, err := field.Get(req.Context())
		_, _ = io.WriteString(w, v)
		return err
	})
	res := ask(srv, "GET", "/fish")
	require.Equal(t, "fish", res.body)
	require.Len(t, res.Cookies(), 1)
	r := httptest.NewRequest("GET", "/read", nil)
	r.AddCookie(res.Cookies()[0])
	rec := httptest.NewRecorder()
	srv.ServeHTTP(rec, r)
	require.Equal(t, "x", rec.Body.String())
}

func TestOptionsAreChecked(t *testing.T) {
	for option, o := range map[string]server.Options{
		"Options.Session":    {Session: session.Options{IdleTimeout: -1}},
		"Options.Params":     {Params: params.Options{MaxBody: -1}},
		"Options.RateLimits": {RateLimits: []*ratelimit.Policy{{Name: "no key"}}},
	} {
		_, err := server.New(o)
		require.ErrorContains(t, err, option)
	}
}

func TestServerReservesItsProperties(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	for _, name := range []string{"session", "params"} {
		require.Panics(t, func() {
			reqctx.Provide(srv.Registry(), reqctx.NewKey[int](name), reqctx.Prop[int]{})
		}, name)
	}
	require.NotNil(t, srv.Sessions())
	require.Panics(t, func() { srv.HandleFunc("no such pattern", nil) })
}

// Many requests at once, each with its own properties.
func TestConcurrentRequests(t *testing.T) {
	srv, l := newServer(t, server.Options{ServerTiming: true, Session: session.Options{Cookie: session.Cookie{Insecure: true}}})
	var open atomic.Int32
	reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
		Resolve: func(ctx context.Context) (string, error) {
			open.Add(1)
			p, err := params.From(ctx)
			if err != nil {
				return "", err
			}
			return p.Query().String("n")
		},
		Commit: func(_ context.Context, v string, _ int, h http.Header) error { h.Set("X-Mark", v); return nil },
		Close:  func(context.Context, string, error) error { open.Add(-1); return nil },
	})
	srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
		err := req.Go("reader", func(ctx context.Context) error { _, err := mark.Get(ctx); return err })
		if err != nil {
			return err
		}
		if err := req.Resolve("mark", "session"); err != nil {
			return err
		}
		v, err := mark.Get(req.Context())
		if err != nil {
			return err
		}
		if err := req.Session().Set("n", v); err != nil {
			return err
		}
		_, err = io.WriteString(w, v)
		return err
	})
	url, c := listen(t, srv)
	concurrently(8, func(i int) {
		for j := range 20 {
			n := strconv.Itoa(100*i + j)
			res, err := request(t, c, "GET", url+"?n="+n)
			if err != nil || res.body != n || res.Header.Get("X-Mark") != n || len(res.Cookies()) != 1 {
				t.Errorf("%s: %v %v %q", n, err, res.Response, res.body)
			}
		}
	})
	require.NoError(t, srv.Shutdown(t.Context()))
	require.Zero(t, open.Load())
	require.Empty(t, l.at(""))
}
