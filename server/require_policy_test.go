package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// newLimited returns a server with the policy, which allows three requests, and its store.
func newLimited(t *testing.T, p *ratelimit.Policy) (*server.Server, *calls) {
	store := newCalls(t)
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{p}, RateLimitStore: store})
	return srv, store
}

// However often a policy is required, a request is charged once, and a denial is the response.
func TestRequirementGivenTwice(t *testing.T) {
	p := policy(t, "p")
	srv, store := newLimited(t, p)
	handled := 0
	group := srv.Group("/", server.Require(p), server.Require(p))
	group.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		handled++
		res, err := p.Take(req)
		require.Equal(t, int64(3-handled), res.Remaining)
		return err
	}, server.Require(p, p))
	for i := range 4 {
		res := ask(srv, []string{"GET", "HEAD"}[i%2], "/")
		require.Equal(t, map[bool]int{true: 200, false: 429}[i < 3], res.StatusCode)
		require.Equal(t, []string{`"p";q=3;w=60`}, res.Header.Values("RateLimit-Policy"))
		require.Equal(t, i == 3, res.Header.Get("Retry-After") != "")
	}
	require.Equal(t, 3, handled)
	require.Len(t, store.keys, 4)
}

func TestStrangersAreNotCharged(t *testing.T) {
	p := policy(t, "p")
	srv, store := newLimited(t, p)
	srv.HandleFunc("GET /turn", nothing, server.Require(session.LoggedIn), server.Require(p))
	srv.HandleFunc("POST /turn", nothing, server.Require(p))
	srv.HandleFunc("GET /together", nothing, server.Require(session.LoggedIn, p))
	require.Equal(t, 401, ask(srv, "GET", "/turn").StatusCode)
	require.Empty(t, store.keys)
	r := httptest.NewRequest("POST", "/turn", nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	rec := httptest.NewRecorder()
	srv.ServeHTTP(rec, r)
	require.Equal(t, 403, rec.Code, "it does not come to the route")
	require.Empty(t, store.keys)
	require.Equal(t, 401, ask(srv, "GET", "/together").StatusCode)
}

// A policy whose key is in the body runs on the handler's goroutine if it stands alone, so that an
// error is sent although the body has not been read.
func TestLimitByTheBody(t *testing.T) {
	user := reqctx.NewKey[string]("user of the body")
	p := policy(t, "p")
	p.Key = ratelimit.ByProperty(user, func(name string) string { return name })
	srv, store := newLimited(t, p)
	reqctx.Provide(srv.Registry(), user, reqctx.Prop[string]{Resolve: func(ctx context.Context) (string, error) {
		r := reqctx.From(ctx).Request()
		if err := r.ParseForm(); err != nil {
			return "", err
		}
		return r.PostForm.Get("user"), nil
	}})
	srv.HandleFunc("POST /", nothing, server.Require(p))
	url, c := listen(t, srv)
	for i := range 4 {
		res, err := c.Post(url, "application/x-www-form-urlencoded", strings.NewReader("user=ada"))
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, map[bool]int{true: 200, false: 429}[i < 3], res.StatusCode)
	}
	require.Contains(t, store.keys[0], "ada")
}

func TestUnknownPoliciesPanic(t *testing.T) {
	p := policy(t, "p")
	srv, _ := newLimited(t, p)
	for want, unknown := range map[string]*ratelimit.Policy{
		`server: route "GET /x": ratelimit: the request has no policy "q" (provided: p)`:                                             policy(t, "q"),
		`server: route "GET /x": ratelimit: policy "p" is another one than the request's: use the *Policy that the server was given`: policy(t, "p"),
	} {
		err := panicOf(func() { srv.HandleFunc("GET /x", nothing, server.Require(p, unknown)) })
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, reqctx.ErrNoProperty)
	}
	require.PanicsWithValue(t, "server: Require: item 1 is nil", func() { server.Require(p, (*ratelimit.Policy)(nil)) })
	srv.HandleFunc("GET /x", nothing, server.Require(p))
}

// A middleware requires a policy in a router of another package, and charges once with the route's own.
func TestRequiringAPolicy(t *testing.T) {
	p := policy(t, "p")
	srv, store := newLimited(t, p)
	p2 := http.NewServeMux()
	p2.Handle("GET /", server.Requiring(p)(server.Requiring(session.Loaded, p)(plain)))
	h := srv.Wrap(router(p2))
	for i := range 4 {
		res := ask(h, "GET", "/")
		require.Equal(t, map[bool]int{true: 200, false: 429}[i < 3], res.StatusCode)
		require.NotEmpty(t, res.Header.Get("RateLimit"))
	}
	require.Len(t, store.keys, 4)
}

// WriteProblem writes the responses to requests that do not meet a requirement, wherever it is required.
func TestRequirementsAndWriteProblem(t *testing.T) {
	p := policy(t, "p")
	p.Rules = []ratelimit.Rule{ratelimit.PerMinute(1)}
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{p}, WriteProblem: func(w http.ResponseWriter, _ *http.Request, problem *server.Problem) {
		w.WriteHeader(problem.Status)
		_, _ = w.Write([]byte("no: " + problem.Title))
	}})
	srv.HandleFunc("GET /route", nothing, server.Require(p))
	srv.Group("/group/", server.Require(session.LoggedIn)).HandleFunc("GET /{$}", nothing)
	srv.Handle("GET /requiring", server.Requiring(session.LoggedIn)(plain))
	require.Equal(t, "no: Login required", ask(srv, "GET", "/group/").body)
	require.Equal(t, "no: Login required", ask(srv, "GET", "/requiring").body)
	require.Equal(t, 200, ask(srv, "GET", "/route").StatusCode)
	res := ask(srv, "GET", "/route")
	require.Equal(t, "no: Quota exceeded", res.body)
	require.Equal(t, 429, res.StatusCode)
	require.NotEmpty(t, res.Header.Get("RateLimit-Policy"))
}

// A test of an application: each route that writes has a limit.
func TestRoutesWithoutALimit(t *testing.T) {
	p := policy(t, "p")
	srv, _ := newLimited(t, p)
	srv.HandleFunc("GET /notes", nothing)
	srv.HandleFunc("POST /notes", nothing, server.Require(session.LoggedIn, p))
	srv.HandleFunc("DELETE /notes", nothing, server.Require(session.LoggedIn))
	var unlimited []string
	for r := range srv.Routes() {
		limited := strings.HasPrefix(r.Pattern, "GET ")
		for _, item := range r.Requires {
			_, ok := item.(*ratelimit.Policy)
			limited = limited || ok
		}
		if !limited {
			unlimited = append(unlimited, r.Pattern)
		}
	}
	require.Equal(t, []string{"DELETE /notes"}, unlimited)
}
