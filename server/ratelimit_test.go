package server_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// calls is a store that records the keys of its calls.
type calls struct {
	ratelimit.Store
	keys []string
}

func (c *calls) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	c.keys = append(c.keys, ops[0].Kind.String()+" "+ops[0].Key)
	return c.Store.Do(ctx, ops)
}

func (c *calls) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	c.keys = append(c.keys, op.Kind.String()+" "+op.Key)
	return c.Store.DoOne(ctx, op)
}

func newCalls(t *testing.T) *calls {
	m, err := memstore.New(memstore.Options{})
	require.NoError(t, err)
	return &calls{Store: m}
}

func eager(t *testing.T, store ratelimit.Store, p *ratelimit.Policy) func(http.Handler) http.Handler {
	m, err := ratelimit.Middleware(store, p, ratelimit.MiddlewareOptions{})
	require.NoError(t, err)
	return m
}

// taking returns a standard handler that takes from p and checks how many units remain.
func taking(t *testing.T, p *ratelimit.Policy, remaining int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res, err := p.Take(r.Context())
		require.NoError(t, err)
		require.Equal(t, remaining, res.Remaining)
		_, err = session.From(r.Context())
		require.NoError(t, err, "the server's properties are there, too")
		_, _ = io.WriteString(w, "ok")
	})
}

// A request is charged once and gets the header fields once, wherever the middleware is.
func TestMiddlewareAndServerChargeOnce(t *testing.T) {
	for where, build := range map[string]func(srv *server.Server, m func(http.Handler) http.Handler, p *ratelimit.Policy) http.Handler{
		"inside of Wrap": func(srv *server.Server, m func(http.Handler) http.Handler, p *ratelimit.Policy) http.Handler {
			return srv.Wrap(m(taking(t, p, 2)))
		},
		"inside of Handle": func(srv *server.Server, m func(http.Handler) http.Handler, p *ratelimit.Policy) http.Handler {
			srv.Handle("GET /", m(taking(t, p, 2)))
			return srv
		},
		"twice inside": func(srv *server.Server, m func(http.Handler) http.Handler, p *ratelimit.Policy) http.Handler {
			return srv.Wrap(m(srv.Wrap(m(taking(t, p, 2)))))
		},
		"around a server without it": func(_ *server.Server, m func(http.Handler) http.Handler, p *ratelimit.Policy) http.Handler {
			srv, _ := newServer(t, server.Options{})
			return m(m(srv.Wrap(m(taking(t, p, 2)))))
		},
	} {
		t.Run(where, func(t *testing.T) {
			store, p := newCalls(t), policy(t, "p")
			srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{p}, RateLimitStore: store})
			h := build(srv, eager(t, store, p), p)
			res := ask(h, "GET", "/")
			require.Equal(t, "ok", res.body)
			require.Equal(t, []string{"take p:192.0.2.1"}, store.keys)
			require.Equal(t, []string{`"p";q=3;w=60`}, res.Header.Values("RateLimit-Policy"))
			for range 2 {
				store.keys = nil
				_, err := store.Do(t.Context(), []ratelimit.Op{{Rule: p.Rules[0], Key: "p:192.0.2.1", N: 1, Kind: ratelimit.Take}})
				require.NoError(t, err)
			}
			res = ask(h, "GET", "/")
			require.Equal(t, 429, res.StatusCode)
			require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
			require.NotEmpty(t, res.Header.Get("Retry-After"))
			require.Contains(t, res.body, `"violated-policies":["p"]`)
			require.Len(t, store.keys, 2)
		})
	}
}

// A middleware's charge is refunded only once, even if Refund is called with several contexts.
func TestRefundOfAMiddlewaresCharge(t *testing.T) {
	store, p := newCalls(t), policy(t, "p")
	srv, _ := newServer(t, server.Options{})
	refund := func(ctx context.Context) {
		ok, err := p.Refund(ctx)
		require.NoError(t, err)
		require.True(t, ok)
	}
	srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
		refund(req.Context())
		n, err := p.Count(req)
		require.NoError(t, err)
		require.Zero(t, n)
		refund(req.Context())
		return nil
	})
	h := eager(t, store, p)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		srv.ServeHTTP(w, r)
		refund(r.Context())
	}))
	require.Equal(t, 200, ask(h, "GET", "/").StatusCode)
	require.Equal(t, []string{"take p:192.0.2.1", "refund p:192.0.2.1", "count p:192.0.2.1"}, store.keys)
}

// A middleware whose policy the server does not have charges by itself. Its key may read the server's properties.
func TestMiddlewareInsideOfAServerWithoutThePolicy(t *testing.T) {
	store, p := newCalls(t), policy(t, "p")
	p.Key = ratelimit.FirstOf(server.BySession(), ratelimit.ByIP())
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{policy(t, "other")}})
	m := eager(t, store, p)
	res := ask(srv.Wrap(m(taking(t, p, 2))), "GET", "/")
	require.Equal(t, "ok", res.body)
	require.Equal(t, []string{"take p:1:192.0.2.1"}, store.keys)
	require.Equal(t, []string{`"p";q=3;w=60`}, res.Header.Values("RateLimit-Policy"))
	require.Equal(t, []string{"Cookie"}, res.Header.Values("Vary"))

	cookie := login(t, srv)
	store.keys = nil
	res = askAs(srv.Wrap(m(taking(t, p, 2))), cookie, "GET", "/")
	require.Equal(t, "ok", res.body)
	require.Regexp(t, `^take p:0:[\w-]{16}$`, store.keys[0])
}

// A server inside a middleware has separate properties, so its takes are charged in addition to the middleware's. The
// same holds for two policies with the same name.
func TestMiddlewareAroundAServerWithThePolicy(t *testing.T) {
	store, own := newCalls(t), newCalls(t)
	p := policy(t, "p")
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{p}, RateLimitStore: own})
	require.Equal(t, "ok", ask(eager(t, store, p)(srv.Wrap(taking(t, p, 2))), "GET", "/").body)
	require.Len(t, store.keys, 1)
	require.Len(t, own.keys, 1)

	stricter := policy(t, "p")
	stricter.Rules = []ratelimit.Rule{p.Rules[0].WithLimit(2)}
	require.Equal(t, "ok", ask(srv.Wrap(eager(t, store, stricter)(taking(t, stricter, 0))), "GET", "/").body)
	require.Len(t, store.keys, 2)
	require.Len(t, own.keys, 1)
}

// If the policies of the middleware and of the server differ, ratelimit.From returns an error that lists both.
func TestSeveralPoliciesAreListed(t *testing.T) {
	store, p, other := newCalls(t), policy(t, "p"), policy(t, "other")
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{p}, RateLimitStore: store})
	h := srv.Wrap(eager(t, store, other)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := ratelimit.From(r.Context())
		require.ErrorContains(t, err, "several policies (other, p)")
		require.NoError(t, other.Require(r.Context()))
		require.NoError(t, p.Require(r.Context()))
	})))
	require.Equal(t, 200, ask(h, "GET", "/").StatusCode)
	require.Len(t, store.keys, 2)
}

func TestBySession(t *testing.T) {
	store, p := newCalls(t), policy(t, "p")
	p.Key = server.BySession()
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{p}, RateLimitStore: store,
		Session: session.Options{Cookie: session.Cookie{Insecure: true}}})
	srv.HandleFunc("GET /take", func(w http.ResponseWriter, req *server.Request) error {
		res, err := req.RateLimit().Take()
		if err != nil {
			return err
		}
		return res.Err()
	})
	cookie := login(t, srv)
	require.Equal(t, 400, ask(srv, "GET", "/take").StatusCode)
	forged := *cookie
	forged.Value = forged.Value[:len(forged.Value)-4] + "AAAA"
	require.Equal(t, 400, askAs(srv, &forged, "GET", "/take").StatusCode)
	require.Empty(t, store.keys)
	for i := range 4 {
		require.Equal(t, map[bool]int{true: 200, false: 429}[i < 3], askAs(srv, cookie, "GET", "/take").StatusCode)
	}
	for _, key := range store.keys {
		require.NotContains(t, cookie.Value, key[len("take p:"):])
		require.Equal(t, store.keys[0], key)
	}
	require.Equal(t, 200, askAs(srv, login2(t, srv), "GET", "/take").StatusCode, "another session")
}

// TestByUser checks that the two sessions of one user share a key, and that another user has a different key.
func TestByUser(t *testing.T) {
	store, p := newCalls(t), policy(t, "p")
	p.Key = server.ByUser()
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{p}, RateLimitStore: store,
		Session: session.Options{Cookie: session.Cookie{Insecure: true}}})
	srv.HandleFunc("POST /bind/{user}", func(_ http.ResponseWriter, req *server.Request) error {
		return req.Session().Bind(req.PathValue("user"))
	})
	srv.HandleFunc("POST /visit", func(_ http.ResponseWriter, req *server.Request) error { return req.Session().Set("n", 1) })
	srv.HandleFunc("GET /take", func(_ http.ResponseWriter, req *server.Request) error { return p.Require(req) })
	cookie := func(path string) *http.Cookie {
		cookies := ask(srv, "POST", path).Cookies()
		require.Len(t, cookies, 1)
		return cookies[0]
	}
	require.Equal(t, 400, ask(srv, "GET", "/take").StatusCode, "no session")
	require.Equal(t, 400, askAs(srv, cookie("/visit"), "GET", "/take").StatusCode, "no user")
	require.Empty(t, store.keys)
	for _, user := range []string{"ada", "ada", "grace"} {
		require.Equal(t, 200, askAs(srv, cookie("/bind/"+user), "GET", "/take").StatusCode)
	}
	require.Equal(t, []string{"take p:ada", "take p:ada", "take p:grace"}, store.keys)
}

// login2 logs in once more, after login.
func login2(t *testing.T, srv *server.Server) *http.Cookie {
	res := ask(srv, "POST", "/login")
	require.Len(t, res.Cookies(), 1)
	return res.Cookies()[0]
}

// In TestFailedLoginsOnly, the handler refunds the charge if the password is right. Wrong passwords are sent
// concurrently.
func TestFailedLoginsOnly(t *testing.T) {
	failures := policy(t, "failures") // 3 per minute
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{failures}})
	var checked atomic.Int64
	srv.HandleFunc("POST /login", func(_ http.ResponseWriter, req *server.Request) error {
		if err := failures.Require(req); err != nil {
			return err
		}
		checked.Add(1)
		if req.FormValue("password") != "right" {
			return server.Errorf(http.StatusUnauthorized, "wrong")
		}
		_, err := failures.Refund(req)
		return err
	})
	for range 10 {
		res := ask(srv, "POST", "/login?password=right")
		require.Equal(t, 200, res.StatusCode)
		require.Contains(t, res.Header.Get("RateLimit"), "r=3", "the field shows the refund")
	}
	checked.Store(0)
	var attempts sync.WaitGroup
	for range 20 {
		attempts.Go(func() { ask(srv, "POST", "/login?password=wrong") })
	}
	attempts.Wait()
	require.EqualValues(t, 3, checked.Load())
	require.Equal(t, 429, ask(srv, "POST", "/login?password=right").StatusCode)
}
