package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

func TestOrderOfARequest(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	var s steps
	user, admin, early := s.property(srv, "user", 0, nil), s.property(srv, "admin", 0, nil), s.property(srv, "early", 0, nil)
	stranger := reqctx.NewKey[int]("stranger")
	reqctx.Provide(srv.Registry(), stranger, reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
		require.NoError(t, early.Require(ctx)) // it has begun
		s.add("begin stranger")
		return 0, server.Errorf(403, "No.")
	}})
	srv.Use(s.middleware("server"))
	api := srv.Group("/api/", server.Require(user))
	api.Use(s.middleware("api 1"), s.middleware("api 2"))
	inner := api.Group("/admin/", server.Require(admin))
	inner.Use(s.middleware("admin"))
	api.HandleFunc("GET /notes", s.handler, server.Require(early))
	api.HandleFunc("POST /notes", s.handler)
	api.HandleFunc("GET /refused", s.handler, server.Require(stranger), server.Prefetch(early))
	inner.Handle("GET /{$}", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { s.add("handler") }), server.Require(early))
	srv.HandleFunc("GET /{$}", s.handler)
	for request, want := range map[string]struct {
		status int
		steps  []string
	}{
		"GET /":            {200, []string{"server", "handler"}},
		"GET /api/notes":   {200, []string{"server", "api 1", "api 2", "begin user", "begin early", "handler"}},
		"HEAD /api/notes":  {200, []string{"server", "api 1", "api 2", "begin user", "begin early", "handler"}},
		"GET /api/admin/":  {200, []string{"server", "api 1", "api 2", "admin", "begin user", "begin admin", "begin early", "handler"}},
		"GET /api/refused": {403, []string{"server", "api 1", "api 2", "begin early", "begin user", "begin stranger"}},
		"POST /api/notes":  {403, []string{"server"}}, // of another origin
		"PUT /api/notes":   {405, []string{"server"}},
		"OPTIONS /api/":    {404, []string{"server"}},
		"GET /api/nothing": {404, []string{"server"}},
		"GET /api/admin":   {307, []string{"server"}},
	} {
		t.Run(request, func(t *testing.T) {
			var method, path string
			_, err := fmt.Sscan(request, &method, &path)
			require.NoError(t, err)
			r := httptest.NewRequest(method, path, nil)
			if method == "POST" {
				r.Header.Set("Sec-Fetch-Site", "cross-site")
			}
			rec := send(srv, r)
			require.Equal(t, want.status, rec.StatusCode)
			got := s.taken()
			if want.status == 403 { // early begins at any time
				require.ElementsMatch(t, want.steps, got)
			} else {
				require.Equal(t, want.steps, got)
			}
			require.Equal(t, want.status == 405, rec.Header.Get("Allow") != "")
		})
	}
	require.Empty(t, l.at(""))
}

func TestPatternsOfAGroup(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	pattern := func(w http.ResponseWriter, req *server.Request) error {
		return writeText(w, req.Pattern, " ", req.PathValue("tenant"))
	}
	api := srv.Group("/api/")
	for _, p := range []string{"GET /notes", "/any", "POST  /spaces", "DELETE\t/tab", "GET /{$}", "GET /sub/"} {
		api.HandleFunc(p, pattern)
	}
	api.Group("/v2/{tenant}/").HandleFunc("GET /x", pattern)
	srv.Group("example.com/api/").HandleFunc("GET /notes", pattern)
	srv.Group("/").HandleFunc("GET /root", pattern)
	for request, want := range map[string]string{
		"GET /api/notes":                   "GET /api/notes ",
		"GET http://example.com/api/notes": "GET example.com/api/notes ",
		"PUT /api/any":                     "/api/any ",
		"POST /api/spaces":                 "POST  /api/spaces ",
		"DELETE /api/tab":                  "DELETE\t/api/tab ",
		"GET /api/":                        "GET /api/{$} ",
		"GET /api/sub/a/b":                 "GET /api/sub/ ",
		"GET /api/v2/t1/x":                 "GET /api/v2/{tenant}/x t1",
		"GET /root":                        "GET /root ",
	} {
		var method, target string
		_, err := fmt.Sscan(request, &method, &target)
		require.NoError(t, err)
		r := httptest.NewRequest(method, target, nil)
		if target[0] == '/' {
			r.Host = "x.test"
		}
		rec := send(srv, r)
		require.Equal(t, want, rec.body, request)
	}
}

func TestRefusedGroups(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	for _, prefix := range []string{"", "api", "/api", "GET /api/", "/a b/"} {
		require.PanicsWithValue(t, fmt.Sprintf("server: group %q: the prefix must end in a slash and have no method", prefix), func() { srv.Group(prefix) })
	}
	api := srv.Group("/api/")
	require.PanicsWithValue(t, `server: group "/api/": the path of "v2/" must begin with a slash`, func() { api.Group("v2/") })
	for _, pattern := range []string{"GET example.com/x", "notes", "GET", ""} {
		require.PanicsWithValue(t, fmt.Sprintf(`server: group "/api/": the path of %q must begin with a slash`, pattern), func() { api.HandleFunc(pattern, nothing) })
	}
	require.PanicsWithValue(t, `server: route "GET /api/x": the handler is nil`, func() { api.HandleFunc("GET /x", nil) })
	require.PanicsWithValue(t, `server: route "/api/x": the handler is nil`, func() { api.Handle("/x", nil) })
	err := panicOf(func() { srv.Group("/v2/", server.Require(account)) })
	require.ErrorIs(t, err, reqctx.ErrNoProperty)
	require.ErrorContains(t, err, `server: group "/v2/": `)

	require.PanicsWithValue(t, "server: Use: item 1 is nil", func() { srv.Group("/a/").Use(compress, nil) })
	broken := srv.Group("/broken/")
	broken.Use(compress, func(http.Handler) http.Handler { return nil })
	require.PanicsWithValue(t, `server: route "/broken/x": middleware 1 of the group returned a nil handler`, func() { broken.HandleFunc("/x", nothing) })
	outer := srv.Group("/outer/")
	outer.Use()
	outer.Group("/inner/")
	require.PanicsWithValue(t, `server: group "/outer/": Use after a route or a group`, func() { outer.Use(compress) })
}

// A middleware may replace the writer. If it replaces the context, the server begins the request again.
func TestMiddlewareThatReplacesTheWriter(t *testing.T) {
	lose := middleware(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(passer{w}, r.WithContext(context.Background()))
	})
	loseContext := middleware(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.Background()))
	})
	for name, m := range map[string]func(http.Handler) http.Handler{
		"compresses": compress, "loses the context": loseContext, "loses the context and the writer": lose,
	} {
		for _, ofGroup := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ofGroup), func(t *testing.T) {
				srv, l := newServer(t, server.Options{})
				provideMark(srv)
				provideBook(srv)
				g := srv.Group("/books/", server.Require(book))
				if ofGroup {
					g.Use(m)
				} else {
					srv.Use(m)
				}
				g.HandleFunc("GET /{id}", marked(func(w http.ResponseWriter, req *server.Request) error {
					return writeText(w, req.PathValue("id"))
				}))
				url, c := listen(t, srv)
				res, err := request(t, c, "GET", url+"/books/7")
				require.NoError(t, err)
				require.Equal(t, "7", res.body)
				require.Equal(t, []string{"1"}, res.Header.Values("X-Mark"))
				res, err = request(t, c, "GET", url+"/books/0")
				require.NoError(t, err)
				require.Equal(t, 404, res.StatusCode)
				require.JSONEq(t, `{"status":404,"title":"Not Found","detail":"No such book."}`, res.body)
				require.Empty(t, l.at(""))
			})
		}
	}
}

func TestRoutes(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	provideBoth(srv)
	srv.HandleFunc("GET /{$}", nothing)
	api := srv.Group("/api/", server.Require(account), server.Prefetch(flags))
	api.HandleFunc("GET /notes", nothing)
	api.Group("/admin/", server.Require(session.LoggedIn, role("admin"))).Handle("/", http.NotFoundHandler(), server.Require(account, flags))
	require.Panics(t, func() { api.HandleFunc("GET /notes", nothing) })
	var routes []server.Route
	for r := range srv.Routes() {
		routes = append(routes, r)
	}
	require.Equal(t, []server.Route{
		{Pattern: "GET /{$}"},
		{Pattern: "GET /api/notes", Requires: []server.Requirement{account}, Prefetch: []server.Property{flags}},
		{Pattern: "/api/admin/", Requires: []server.Requirement{account, session.LoggedIn, role("admin"), account, flags}, Prefetch: []server.Property{flags}},
	}, routes)
	require.Equal(t, "[account session.LoggedIn admin account flags]", fmt.Sprint(routes[2].Requires))
	routes[1].Requires[0] = flags
	for r := range srv.Routes() {
		require.NotContains(t, r.Requires[:min(1, len(r.Requires))], flags, "a copy was changed")
	}
}

func TestRoutesShowWhatAGroupDoesNotProtect(t *testing.T) {
	withGroups := func() *server.Server {
		srv, _ := newServer(t, server.Options{})
		provideBoth(srv)
		srv.Group("/api/", server.Require(account, role("admin")))
		srv.Group("/api/", server.Require(account))
		srv.Group("example.com/{tenant}/files/", server.Require(flags))
		srv.Group("/deep/v1/", server.Require(flags))
		return srv
	}
	both, one := []server.Requirement{account, role("admin")}, []server.Requirement{role("admin")}
	all := append(both[:2:2], flags)
	for pattern, lacks := range map[string][]server.Requirement{
		"/": nil, "GET /{$}": nil, "GET /api": nil, "GET /{rest...}": nil, "GET /apis/x": nil, "GET /other/x": nil,
		"GET /api/debug": both, "GET /api/{$}": both, "DELETE /api/": all, "GET /{tenant}/": all, "GET /{a}/{rest...}": all,
		"GET /x/{rest...}": {flags}, "/x/": {flags}, "GET /x/y": nil, "GET /x/{$}": nil, "GET /y/{z}": nil, "other.org/x/": nil,
		"example.com/api/x": both, "GET /x/files/y": {flags}, "other.org/x/files/z": nil, "PUT /{a}/files/{b}/": all,
		"/deep/": {flags}, "/deep/{rest...}": {flags}, "GET /deep": nil, "GET /deep/v1": nil, "GET /deep/{$}": nil, "/deep/v2/": nil,
		"/deep/{v}/x/": {flags}, "example.com/": nil, "example.com/x/": {flags},
	} {
		srv := withGroups()
		srv.HandleFunc(pattern, nothing)
		require.Equal(t, lacks, lacking(srv, pattern), pattern)
	}
	srv := withGroups()
	srv.HandleFunc("GET /api/half", nothing, server.Require(account))
	require.Equal(t, one, lacking(srv, "GET /api/half"))
	srv.HandleFunc("GET /api/team", nothing, server.Require(account, team{role("admin")}))
	require.Equal(t, one, lacking(srv, "GET /api/team"), "another requirement with the same text")
	srv.Group("/api/", server.Require(role("admin"), account)).HandleFunc("GET /whole", nothing)
	require.Empty(t, lacking(srv, "GET /api/whole"))
}

type team struct{ role }

func TestTheGroupOfAllRoutes(t *testing.T) {
	for _, pattern := range []string{"/", "GET /{$}", "GET /{rest...}", "POST /x"} {
		srv, _ := newServer(t, server.Options{})
		provideBoth(srv)
		srv.Group("/", server.Require(account))
		srv.HandleFunc(pattern, nothing)
		require.Equal(t, []server.Requirement{account}, lacking(srv, pattern), pattern)
	}
}

// lacking returns what a route lacks.
func lacking(srv *server.Server, pattern string) (lacks []server.Requirement) {
	for r := range srv.Routes() {
		if r.Pattern == pattern {
			lacks = r.Lacks
		}
	}
	return lacks
}
