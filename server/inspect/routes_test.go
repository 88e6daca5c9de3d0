package inspect

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// asking is a requirement whose text comes from the inspector, which therefore must not hold its lock.
type asking struct{ in *Inspector }

func (asking) Start(context.Context) error   { return nil }
func (asking) Require(context.Context) error { return nil }
func (a asking) String() string {
	a.in.mu.Lock()
	defer a.in.mu.Unlock()
	return "asking"
}

func TestTableOfRoutes(t *testing.T) {
	in := newInspector(t, Options{})
	require.Equal(t, []routeRow{}, in.snapshot(filter{}).Table)
	a := reqctx.NewKey[int]("a")
	for range 2 {
		srv, err := server.New(server.Options{Observers: []server.Observer{in}})
		require.NoError(t, err)
		reqctx.Provide(srv.Registry(), a, reqctx.Prop[int]{Resolve: func(context.Context) (int, error) { return 1, nil }})
		api := srv.Group("/api/", server.Require(asking{in}))
		api.HandleFunc("GET /x", reads("a"), server.Prefetch(a))
		srv.HandleFunc("GET /api/y", reads("a"), server.Require(session.Loaded, a))
		for range 3 {
			srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/api/y", nil))
		}
	}
	rows := []routeRow{
		{"GET /api/x", []string{"asking"}, []string{"a"}, []string{}},
		{"GET /api/y", []string{"session", "a"}, []string{}, []string{"asking"}},
	}
	require.Equal(t, append(rows, rows...), in.snapshot(filter{}).Table)
}

func TestRequestWithoutAServerHasNoRoutes(t *testing.T) {
	in := newInspector(t, Options{})
	finish(in, "GET /x", 200, 0)
	require.Equal(t, []routeRow{}, in.snapshot(filter{}).Table)
}

func TestServersOfTheTableAreBounded(t *testing.T) {
	in := newInspector(t, Options{})
	for range maxServers + 1 {
		srv, err := server.New(server.Options{Observers: []server.Observer{in}})
		require.NoError(t, err)
		srv.HandleFunc("GET /", reads())
		srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	require.Len(t, in.snapshot(filter{}).Table, maxServers)
}
