package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	ratestore "github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session/memstore"
)

func nothing(http.ResponseWriter, *server.Request) error { return nil }

func TestNilHandlersAreRefused(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	const route = `server: route "/a": the handler is nil`
	require.PanicsWithValue(t, route, func() { srv.HandleFunc("/a", nil) })
	require.PanicsWithValue(t, route, func() { srv.Handle("/a", nil) })
	require.PanicsWithValue(t, route, func() { srv.Handle("/a", http.HandlerFunc(nil)) })
	require.PanicsWithValue(t, route, func() { srv.Handle("/a", (*http.ServeMux)(nil)) })
	require.PanicsWithValue(t, "server: Wrap: the handler is nil", func() { srv.Wrap(nil) })
	require.PanicsWithValue(t, "server: Wrap: the handler is nil", func() { srv.Wrap((*http.ServeMux)(nil)) })
	require.PanicsWithValue(t, "server: WrapFunc: the handler is nil", func() { srv.WrapFunc(nil) })
	srv.HandleFunc("/a", nothing) // nothing was registered
}

func TestRefusedPatterns(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	srv.HandleFunc("GET /a/{b}", nothing)
	require.PanicsWithValue(t, "server: parsing \"GET a\": at offset 4: host/path missing /", func() { srv.HandleFunc("GET a", nothing) })
	require.PanicsWithValue(t, "server: pattern \"GET /a/{c}\" conflicts with pattern \"GET /a/{b}\":\nGET /a/{c} matches the same requests as GET /a/{b}",
		func() { srv.Handle("GET /a/{c}", http.NotFoundHandler()) })
}

func TestRefusedOptions(t *testing.T) {
	observer := &quietObserver{}
	for want, o := range map[string]server.Options{
		"server: Options.SessionStore is a nil *memstore.Store":                           {SessionStore: (*memstore.Store)(nil)},
		"server: Options.RateLimitStore is a nil *memstore.Store":                         {RateLimitStore: (*ratestore.Store)(nil)},
		"server: Options.Observers[1] is nil":                                             {Observers: []server.Observer{observer, nil}},
		"server: Options.Observers[0] is nil":                                             {Observers: []server.Observer{(*quietObserver)(nil)}},
		"server: Options.Observers[2] is given twice, and would count each request twice": {Observers: []server.Observer{observer, &quietObserver{}, observer}},
	} {
		_, err := server.New(o)
		require.EqualError(t, err, want)
	}
	_, err := server.New(server.Options{Observers: []server.Observer{sliceObserver{}, sliceObserver{}}})
	require.NoError(t, err, "these can't be compared")
}

type quietObserver struct{ _ int }

func (*quietObserver) RequestEnd(context.Context, server.RequestInfo) {}

type sliceObserver struct {
	*quietObserver
	_ []int
}

func TestFailedCleanUpNamesItsRequest(t *testing.T) {
	srv, log := newServer(t, server.Options{})
	srv.HandleFunc("/a", func(_ http.ResponseWriter, req *server.Request) error {
		req.OnClose(func() error { return errors.New("why") })
		return nil
	})
	srv.HandleFunc("/b", func(_ http.ResponseWriter, req *server.Request) error {
		req.OnClose(func() error { panic("what") })
		return nil
	})
	srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/a", nil))
	line := log.only(t)
	require.Equal(t, "request clean-up failed", line["msg"])
	require.Equal(t, "POST", line["method"])
	require.Equal(t, "/a", line["path"])
	require.Equal(t, `reqctx: closing "OnClose": why`, line["error"])
	require.NotContains(t, line, "stack")

	srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/b", nil))
	line = log.at("ERROR")[1]
	require.Equal(t, "/b", line["path"])
	require.Equal(t, `reqctx: closing "OnClose": lazy: OnClose panicked: what`, line["error"])
	require.Contains(t, line["stack"], "refuse_test.go", "where it happened")
}
