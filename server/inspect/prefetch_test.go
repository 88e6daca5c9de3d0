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
)

// prefetching returns a server with properties of 2 ms, safe and not, and a function that sends
// a route's requests.
func prefetching(t *testing.T) (srv *server.Server, in *Inspector, send func(path string, n int)) {
	in = newInspector(t, Options{})
	srv, err := server.New(server.Options{Observers: []server.Observer{in}})
	require.NoError(t, err)
	for _, name := range []string{"a", "b", "c", "unmarked", "reads a", "broken"} {
		reqctx.Provide(srv.Registry(), reqctx.NewKey[int](name), reqctx.Prop[int]{Prefetch: name != "unmarked", Resolve: func(ctx context.Context) (int, error) {
			<-time.After(2 * time.Millisecond)
			switch name {
			case "broken":
				return 0, errors.New("broken")
			case "reads a":
				_, err := reqctx.Get(ctx, "a")
				return 0, err
			default:
				return 0, nil
			}
		}})
	}
	return srv, in, func(path string, n int) {
		for range n {
			srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
		}
	}
}

// reads reads properties one after another.
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
		"one after another":              {reads("a", "b", "c"), 20, []advice{{"GET /x", []string{"a", "b", "c"}, nil, 4}}},
		"unmarked":                       {reads("a", "unmarked"), 20, []advice{{"GET /x", []string{"a", "unmarked"}, []string{"unmarked"}, 2}}},
		"too few requests":               {reads("a", "b"), 19, nil},
		"one property":                   {reads("a"), 20, nil},
		"in parallel":                    {func(_ http.ResponseWriter, req *server.Request) error { return req.Resolve("a", "b") }, 20, nil},
		"one within the other":           {reads("reads a"), 20, nil},
		"not read by the handler itself": {reads("reads a", "b"), 20, []advice{{"GET /x", []string{"reads a", "b"}, nil, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, in, send := prefetching(t)
				srv.HandleFunc("GET /x", tt.h)
				send("/x", tt.n)
				got := in.snapshot(filter{})
				require.ElementsMatch(t, tt.want, got.Advice)
				require.Empty(t, got.Prefetches)
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

func TestWhatIsPrefetchedAndNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, in, send := prefetching(t)
		srv.HandleFunc("GET /x", func(w http.ResponseWriter, req *server.Request) error {
			<-time.After(time.Millisecond)
			return reads("a", "b")(w, req)
		}, server.Prefetch("reads a", "c", "b", "a"))
		send("/x", 30)
		synctest.Wait()
		got := in.snapshot(filter{})
		require.Empty(t, got.Advice, "it prefetches already")
		require.Equal(t, []prefetchSummary{
			{"GET /x", "a", 30, 0, 0}, {"GET /x", "b", 30, 0, 0}, {"GET /x", "c", 30, 30, 0}, {"GET /x", "reads a", 30, 30, 0},
		}, got.Prefetches)
		for _, p := range got.Properties {
			switch p.Name {
			case "a", "b":
				require.Equal(t, [2]uint64{30, 0}, [2]uint64{p.Needed, p.Unread}, p.Name)
			case "c":
				require.Equal(t, [2]uint64{0, 30}, [2]uint64{p.Needed, p.Unread}, p.Name)
			}
		}
		d := newest(t, in)
		require.Equal(t, 2, d.Read)
		require.True(t, find(t, d, "a").Early)
		require.False(t, find(t, d, "a").Unread)
		require.True(t, find(t, d, "c").Unread)
		require.NoError(t, srv.Shutdown(t.Context()))
	})
}

func TestAFailedPrefetchIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, in, send := prefetching(t)
		srv.HandleFunc("GET /x", func(http.ResponseWriter, *server.Request) error { <-time.After(time.Second); return nil }, server.Prefetch("broken"))
		send("/x", 3)
		got := in.snapshot(filter{})
		require.Equal(t, []prefetchSummary{{"GET /x", "broken", 3, 3, 3}}, got.Prefetches)
		require.Zero(t, got.Strip.Failed)
		d := newest(t, in)
		require.False(t, d.Failed)
		require.Equal(t, "broken", find(t, d, "broken").Error)
	})
}

func TestUsesOfARouteAreBounded(t *testing.T) {
	r := &route{name: "GET /x"}
	size := 0
	for i := range 100 {
		size += r.addUses([]named{{string(rune('a' + i)), reqctx.Info{State: reqctx.Resolved, Began: time.Unix(1, 0)}}})
	}
	require.Len(t, r.uses, maxRouteUses)
	require.Less(t, size, 2000)
}
