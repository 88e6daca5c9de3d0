package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/server"
)

// plain is a standard handler.
var plain = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// around is a middleware that hides the handler's type.
func around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) })
}

// muxOf returns a mux with h at the patterns.
func muxOf(h http.Handler, patterns ...string) *http.ServeMux {
	mux := http.NewServeMux()
	for _, p := range patterns {
		mux.Handle(p, h)
	}
	return mux
}

// calling calls a mux as a handler of the server does.
func calling(mux *http.ServeMux) server.HandlerFunc {
	return func(w http.ResponseWriter, req *server.Request) error { mux.ServeHTTP(w, req.Request); return nil }
}

func TestUnknownBudgetsAreAnErrorOfServe(t *testing.T) {
	const upload, typo = "POST /api/up", "POST /api/upp"
	for name, c := range map[string]struct {
		build  func(srv *server.Server)
		routes []string // the patterns that have budgets, with ! before those that are unknown
		warns  bool     // there is no error, because a handler may be a router
	}{
		"routes": {func(srv *server.Server) {
			srv.HandleFunc(upload, nothing)
			srv.Handle("GET /{id}/x", plain)
		}, []string{upload, "GET /{id}/x", "!" + typo, "!/api/up", "!POST /api/up/", "!GET /{name}/x", "!POST", "!a%b", "!/%zz"}, false},
		"patterns of all kinds": {func(srv *server.Server) {
			for _, p := range []string{"/", "GET /{$}", "/a", "GET /a", "/a/", "/a/{$}", "/a/{id}", "/a/{id}/b/", "x.test/a/{id}", "/b%2Fb", "POST  /c"} {
				srv.HandleFunc(p, nothing)
			}
		}, []string{"/", "GET /{$}", "/a", "GET /a", "/a/", "/a/{$}", "/a/{id}", "/a/{id}/b/", "x.test/a/{id}", "/b%2Fb", "POST  /c", "!POST /a/{id}", "!/d", "!/a/{more...}"}, true},
		"a mux": {func(srv *server.Server) {
			srv.Handle("/api/", muxOf(plain, upload))
		}, []string{upload, "!" + typo, "/api/", "!POST /up"}, true},
		"a mux in a mux": {func(srv *server.Server) {
			srv.Handle("/", muxOf(muxOf(srv.WrapFunc(nothing), upload), "/api/"))
		}, []string{upload, "!" + typo, "/api/", "!/{rest...}"}, true},
		"a mux without its prefix": {func(srv *server.Server) {
			srv.Handle("/api/", http.StripPrefix("/api", muxOf(plain, "POST /up")))
		}, []string{"!POST /up"}, true},
		"a mux in a handler": {func(srv *server.Server) {
			srv.HandleFunc("/api/", calling(muxOf(plain, upload)))
		}, []string{"/api/", "!" + upload}, true},
		"a middleware that routes": {func(srv *server.Server) {
			srv.HandleFunc("GET /x", nothing)
			mux := muxOf(plain, upload)
			srv.Use(func(http.Handler) http.Handler { return mux })
		}, []string{"!" + upload}, true},
		"a middleware of a group that routes": {func(srv *server.Server) {
			api := srv.Group("/api/")
			api.Use(func(http.Handler) http.Handler { return muxOf(plain, upload) })
			api.HandleFunc("/up", nothing)
		}, []string{"!" + upload}, true},
		"a mux at a route": {func(srv *server.Server) {
			srv.Handle("/api/up", muxOf(plain, upload))
		}, []string{upload, "!" + typo}, false},
		"a handler of everything": {func(srv *server.Server) {
			srv.HandleFunc("/", nothing)
			srv.HandleFunc(upload, nothing)
		}, []string{upload, "!" + typo}, true},
	} {
		t.Run(name, func(t *testing.T) {
			budgets := map[string]params.Options{}
			var unknown []string
			for _, pattern := range c.routes {
				if pattern[0] == '!' {
					pattern = pattern[1:]
					unknown = append(unknown, pattern)
				}
				budgets[pattern] = params.Options{}
			}
			srv, logs := newServer(t, server.Options{Params: params.Options{Routes: maps.Clone(budgets)}})
			c.build(srv)
			require.NoError(t, srv.Close())
			l := newPipes()
			err := srv.Serve(l)
			<-l.over
			slices.Sort(unknown)
			text := fmt.Sprintf("server: Options.Params.Routes has patterns that no route of the server has: %q", unknown)
			if c.warns {
				require.ErrorIs(t, err, http.ErrServerClosed)
				require.Equal(t, text+". A middleware or a handler may have them.", logs.at("WARN")[0]["msg"])
				return
			}
			require.EqualError(t, err, text)
			require.ErrorAs(t, err, new(*server.OptionError))
			require.Empty(t, logs.at("WARN"))
		})
	}
}

func TestServeWithKnownBudgets(t *testing.T) {
	srv, logs := newServer(t, server.Options{Params: params.Options{Routes: map[string]params.Options{"POST /up": {}, "GET /x": {}}}})
	srv.HandleFunc("POST /up", nothing)
	srv.Handle("/", around(muxOf(plain, "GET /x")))
	require.NoError(t, srv.Close())
	require.ErrorIs(t, srv.Serve(newPipes()), http.ErrServerClosed)
	require.Empty(t, logs.at(""))
}
