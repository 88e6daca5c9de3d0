package server_test

import (
	"io"
	"log/slog"
	"maps"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/server"
)

func TestUnknownBudgetsAreLogged(t *testing.T) {
	const upload, typo = "POST /api/up", "POST /api/upp"
	budgets := map[string]params.Options{upload: {}, "/y/{a}": {}}
	srv, logs := newServer(t, server.Options{Params: params.Options{Routes: maps.Clone(budgets)}})
	budgets[typo] = params.Options{}
	wrong, logsWrong := newServer(t, server.Options{Params: params.Options{Routes: budgets}})
	for _, srv := range []*server.Server{srv, wrong} {
		srv.Group("/api/").HandleFunc("POST /up", nothing)
		srv.Handle("/y/{a}", http.NotFoundHandler())
		require.NoError(t, srv.Close())
		require.ErrorIs(t, srv.Serve(newPipes()), http.ErrServerClosed)
	}
	require.Empty(t, logs.at(""))
	require.Equal(t, []any{typo}, logsWrong.at("WARN")[0]["patterns"])
}

// TestLoggerReadsRoutes checks that the server holds no lock while it logs.
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
	require.NoError(t, srv.Close())
	require.ErrorIs(t, srv.Serve(newPipes()), http.ErrServerClosed)
}
