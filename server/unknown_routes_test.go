package server_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/server"
)

// plain is a standard handler.
var plain = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// around returns h in a handler that hides its type.
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

func TestUnknownBudgetsAreAnErrorOfServe(t *testing.T) {
	const upload, typo = "POST /api/up", "POST /api/upp"
	for name, c := range map[string]struct {
		build func(srv *server.Server)
		warns bool // there is no error, because a handler may be a router
	}{
		"routes":                  {func(*server.Server) {}, false},
		"a mux":                   {func(srv *server.Server) { srv.Handle("/other/", muxOf(plain, typo)) }, true},
		"a mux of a route":        {func(srv *server.Server) { srv.Handle("/other", muxOf(plain, typo)) }, true},
		"a handler of a route":    {func(srv *server.Server) { srv.Handle("/other", plain) }, false},
		"a middleware":            {func(srv *server.Server) { srv.Use(around) }, true},
		"a middleware of a group": {func(srv *server.Server) { srv.Group("/other/").Use(around) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			srv, logs := newServer(t, server.Options{Params: params.Options{Routes: map[string]params.Options{upload: {}, "/y/{a}": {}, typo: {}}}})
			srv.Group("/api/").HandleFunc("POST /up", nothing)
			srv.Handle("/y/{a}", plain)
			c.build(srv)
			require.NoError(t, srv.Close())
			l := newPipes()
			err := srv.Serve(l)
			<-l.over
			text := fmt.Sprintf("server: Options.Params.Routes has patterns that no route of the server has: [%q]", typo)
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
	srv, logs := newServer(t, server.Options{Params: params.Options{Routes: map[string]params.Options{"POST /up": {}}}})
	srv.HandleFunc("POST /up", nothing)
	require.NoError(t, srv.Close())
	require.ErrorIs(t, srv.Serve(newPipes()), http.ErrServerClosed)
	require.Empty(t, logs.at(""))
}

// Logging holds no lock.
func TestLoggerReadsRoutes(t *testing.T) {
	var srv *server.Server
	var err error
	readsRoutes := func(_ []string, a slog.Attr) slog.Attr {
		for range srv.Routes() {
		}
		return a
	}
	log := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{ReplaceAttr: readsRoutes}))
	srv, err = server.New(server.Options{Logger: log, Params: params.Options{Routes: map[string]params.Options{"/typo": {}}}})
	require.NoError(t, err)
	srv.Use(around)
	require.NoError(t, srv.Close())
	require.ErrorIs(t, srv.Serve(newPipes()), http.ErrServerClosed)
}
