package server_test

import (
	"context"
	"io"
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

// book is a property that reads the path value id. Only the router's copy of the request has path values.
var book = reqctx.NewKey[string]("book")

func provideBook(srv *server.Server) {
	reqctx.Provide(srv.Registry(), book, reqctx.Prop[string]{Resolve: func(ctx context.Context) (string, error) {
		if id := reqctx.From(ctx).Request().PathValue("id"); id != "0" {
			return id, nil
		}
		return "", server.Errorf(404, "No such book.")
	}})
}

func TestRequiringInAWrappedRouter(t *testing.T) {
	srv, l := newServer(t, plainCookies)
	provideBook(srv)
	mux := http.NewServeMux()
	read := func(w http.ResponseWriter, r *http.Request) {
		id, err := book.Get(r.Context())
		require.NoError(t, err)
		_, _ = io.WriteString(w, id)
	}
	mux.Handle("GET /books/{id}", server.Requiring(session.Loaded, book)(http.HandlerFunc(read)))
	mux.Handle("GET /mine/{id}", server.Requiring(session.LoggedIn)(server.Requiring(book)(http.HandlerFunc(read))))
	h := srv.Wrap(router(mux))
	res := ask(h, "GET", "/books/7")
	require.Equal(t, "7", res.body)
	require.Equal(t, []string{"Cookie"}, res.Header.Values("Vary"))
	requireProblem(t, 404, `{"status":404,"title":"Not Found","detail":"No such book."}`, ask(h, "GET", "/books/0"))
	require.Equal(t, 401, ask(h, "GET", "/mine/7").StatusCode)
	require.Equal(t, "404 page not found\n", ask(h, "GET", "/nowhere").body, "the router's own")
	require.Empty(t, l.at(""))
}

func TestRequiringWithoutAServer(t *testing.T) {
	rec := httptest.NewRecorder()
	server.Requiring(session.Loaded)(http.NotFoundHandler()).ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	requireProblem(t, 500, internalError, answer{rec.Result(), rec.Body.String()})
}

func TestRequiringAnUnknownProperty(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	requireProblem(t, 500, internalError, ask(srv.Wrap(server.Requiring(book)(http.NotFoundHandler())), "GET", "/"))
	require.Contains(t, l.only(t)["error"], reqctx.ErrNoProperty.Error())
}

// newLimited returns a server with the policy, which allows three requests, and its store.
func newLimited(t *testing.T, p *ratelimit.Policy) (*server.Server, *calls) {
	store := newCalls(t)
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{p}, RateLimitStore: store})
	return srv, store
}

// If a policy is required several times, a request is still charged once, and a denial is the response.
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
	rec := send(srv, r)
	require.Equal(t, 403, rec.StatusCode, "it does not come to the route")
	require.Empty(t, store.keys)
	require.Equal(t, 401, ask(srv, "GET", "/together").StatusCode)
}

// If a policy is the only item of a Require, it runs on the handler's goroutine. So its key may read the body, and
// errors are still sent.
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
	for _, unknown := range []*ratelimit.Policy{policy(t, "q"), policy(t, "p")} {
		err := panicOf(func() { srv.HandleFunc("GET /x", nothing, server.Require(p, unknown)) })
		require.ErrorContains(t, err, `server: route "GET /x": ratelimit: the request has no policy "`+unknown.Name+`": give this *Policy`)
		require.ErrorIs(t, err, reqctx.ErrNoProperty)
	}
	require.PanicsWithValue(t, "server: Require: item 1 is nil", func() { server.Require(p, (*ratelimit.Policy)(nil)) })
	srv.HandleFunc("GET /x", nothing, server.Require(p))
}
