package inspect

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// private is a property whose name other code cannot use, like the take of a policy.
var private = reqctx.NewKey[int]("private")

// public maps names to properties.
var public = map[string]reqctx.Key[int]{}

func init() {
	for _, name := range []string{"a", "b", "c", "reads a"} {
		public[name] = reqctx.NewKey[int](name)
	}
}

// prefetching returns a server with properties of 2 ms and a function that sends a route's requests.
func prefetching(t *testing.T) (srv *server.Server, in *Inspector, send func(path string, n int)) {
	in = newInspector(t, Options{})
	srv, err := server.New(server.Options{Observers: []server.Observer{in}, Callers: true})
	require.NoError(t, err)
	for name, key := range public {
		reqctx.Provide(srv.Registry(), key, reqctx.Prop[int]{Resolve: func(ctx context.Context) (int, error) {
			<-time.After(2 * time.Millisecond)
			if name == "reads a" {
				_, err := reqctx.Get(ctx, "a")
				return 0, err
			}
			return 0, nil
		}})
	}
	reqctx.Provide(srv.Registry(), private, reqctx.Prop[int]{Private: true, Resolve: func(context.Context) (int, error) {
		<-time.After(2 * time.Millisecond)
		return 0, nil
	}})
	return srv, in, func(path string, n int) {
		for range n {
			srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
		}
	}
}

// reads returns a handler that reads the properties one after another.
func reads(names ...string) server.HandlerFunc {
	return func(_ http.ResponseWriter, req *server.Request) error {
		for _, name := range names {
			if _, err := req.Get(name); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestAdviceToPrefetch(t *testing.T) {
	for name, tt := range map[string]struct {
		h    server.HandlerFunc
		n    int
		want []advice
	}{
		"one after another": {reads("a", "b", "c"), 20, []advice{{"GET /x", []string{"a", "b", "c"}, 4}}},
		"a private one": {func(_ http.ResponseWriter, req *server.Request) error {
			_, err := private.Get(req.Context())
			return errors.Join(err, reads("a", "b")(nil, req))
		}, 20, []advice{{"GET /x", []string{"a", "b"}, 2}}},
		"beside a private one": {func(_ http.ResponseWriter, req *server.Request) error {
			err := private.Start(req.Context())
			<-time.After(time.Millisecond)
			return errors.Join(err, reads("a", "b", "c")(nil, req))
		}, 20, []advice{{"GET /x", []string{"a", "b", "c"}, 3}}},
		"too few requests":               {reads("a", "b"), 19, nil},
		"one property":                   {reads("a"), 20, nil},
		"in parallel":                    {func(_ http.ResponseWriter, req *server.Request) error { return req.Resolve("a", "b") }, 20, nil},
		"one within the other":           {reads("reads a"), 20, nil},
		"not read by the handler itself": {reads("reads a", "b"), 20, []advice{{"GET /x", []string{"reads a", "b"}, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, in, send := prefetching(t)
				srv.HandleFunc("GET /x", tt.h)
				send("/x", tt.n)
				got := in.snapshot(filter{})
				require.ElementsMatch(t, tt.want, got.Advice)
			})
		})
	}
}

func TestAdviceIsAboutWhatNearlyAllRequestsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, in, send := prefetching(t)
		srv.HandleFunc("GET /x/{kind}", func(w http.ResponseWriter, req *server.Request) error {
			if req.PathValue("kind") == "rare" {
				return nil
			}
			return reads("a", "b")(w, req)
		})
		send("/x/common", 90)
		send("/x/rare", 10)
		require.Len(t, in.snapshot(filter{}).Advice, 1)
		send("/x/rare", 1)
		require.Empty(t, in.snapshot(filter{}).Advice)
		send("/none", 100)
		require.Empty(t, in.snapshot(filter{}).Advice)
	})
}

func TestPrefetchedPropertiesCountAsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, in, send := prefetching(t)
		srv.HandleFunc("GET /x", func(w http.ResponseWriter, req *server.Request) error {
			<-time.After(time.Millisecond)
			return reads("a", "b")(w, req)
		}, server.Prefetch(public["c"], public["b"], public["a"]))
		send("/x", 30)
		got := in.snapshot(filter{})
		require.Empty(t, got.Advice, "it prefetches already")
		for _, p := range got.Properties {
			if p.Name == "c" {
				require.Equal(t, uint64(30), p.Needed)
			}
		}
		d := newest(t, in)
		require.Equal(t, 3, d.Read)
		require.Empty(t, find(t, d, "a").Caller)
		require.NoError(t, srv.Shutdown(t.Context()))
	})
}

func TestUsesOfARouteAreBounded(t *testing.T) {
	r := new(route)
	size := 0
	for i := range 100 {
		size += r.addUses([]named{{string(rune('a' + i)), reqctx.Info{State: reqctx.Resolved, Began: time.Unix(1, 0)}}})
	}
	require.Len(t, r.uses, maxRouteUses)
	require.Less(t, size, 2000)
}

// asking is a requirement whose String method asks the inspector for a snapshot. The inspector must not hold its
// lock then.
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
