package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

// Wherever a server is mounted, each request has one set of properties in each
// server that it passes, and each is committed once.
func TestNestedServers(t *testing.T) {
	var commits, resolved int
	provide := func(srv *server.Server) *server.Server {
		reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
			Resolve: func(context.Context) (string, error) { resolved++; return "x", nil },
			Commit: func(_ context.Context, v string, _ int, h http.Header) error {
				commits++
				h.Add("X-Mark", v)
				return nil
			},
		})
		srv.HandleFunc("GET /leaf/{id}", marked(func(w http.ResponseWriter, req *server.Request) error {
			id, err := req.Params().Path().String("id")
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, "leaf "+id)
			return err
		}))
		srv.Handle("GET /standard/{id}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p, err := params.From(r.Context())
			require.NoError(t, err)
			id, err := p.Path().String("id")
			require.NoError(t, err)
			_, _ = io.WriteString(w, "standard "+id)
		}))
		srv.HandleFunc("GET /fail", marked(func(http.ResponseWriter, *server.Request) error { return server.Errorf(409, "Taken.") }))
		srv.HandleFunc("GET /cut", marked(func(w http.ResponseWriter, _ *server.Request) error {
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			return errSave
		}))
		srv.HandleFunc("GET /panic", marked(func(http.ResponseWriter, *server.Request) error { panic("boom") }))
		srv.HandleFunc("GET /empty", marked(func(http.ResponseWriter, *server.Request) error { return nil }))
		return srv
	}
	for name, tt := range map[string]struct {
		mount func(t *testing.T) (http.Handler, *logs)
		each  int // commits of a request that has read the property
	}{
		"alone": {func(t *testing.T) (http.Handler, *logs) {
			srv, l := newServer(t, server.Options{})
			return http.StripPrefix("/api", provide(srv)), l
		}, 1},
		"itself, under StripPrefix": {func(t *testing.T) (http.Handler, *logs) {
			srv, l := newServer(t, server.Options{})
			provide(srv).Handle("/api/", http.StripPrefix("/api", srv))
			return srv, l
		}, 1},
		"itself, from a handler that has read the property": {func(t *testing.T) (http.Handler, *logs) {
			srv, l := newServer(t, server.Options{})
			provide(srv).HandleFunc("/api/{rest...}", marked(func(w http.ResponseWriter, req *server.Request) error {
				rest := req.PathValue("rest")
				http.StripPrefix("/api", srv).ServeHTTP(w, req.Request)
				require.Equal(t, rest, req.PathValue("rest"), "the inner request is another")
				require.Same(t, req.Request, reqctx.From(req.Context()).Request())
				return nil
			}))
			return srv, l
		}, 1},
		"itself, behind a writer of its own": {func(t *testing.T) (http.Handler, *logs) {
			srv, l := newServer(t, server.Options{})
			provide(srv).Handle("/api/", through(http.StripPrefix("/api", srv)))
			return srv, l
		}, 1},
		"another": {func(t *testing.T) (http.Handler, *logs) {
			outer, l := newServer(t, server.Options{})
			inner, err := server.New(server.Options{Logger: l.logger()})
			require.NoError(t, err)
			outer.Handle("/api/", http.StripPrefix("/api", provide(inner)))
			return outer, l
		}, 1},
		"another that has the property too": {func(t *testing.T) (http.Handler, *logs) {
			outer, l := newServer(t, server.Options{})
			inner, err := server.New(server.Options{Logger: l.logger()})
			require.NoError(t, err)
			_ = provide(inner)
			provide(outer).HandleFunc("/api/", marked(func(w http.ResponseWriter, req *server.Request) error {
				http.StripPrefix("/api", inner).ServeHTTP(w, req.Request)
				return nil
			}))
			return outer, l
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			h, l := tt.mount(t)
			url, c := listen(t, h)
			get := func(path string) (answer, error) {
				commits, resolved = 0, 0
				return request(t, c, "GET", url+path)
			}
			once := func(res answer) {
				require.Equal(t, tt.each, commits)
				require.Equal(t, tt.each, resolved)
				require.Len(t, res.Header.Values("X-Mark"), tt.each)
			}
			res, err := get("/api/leaf/7")
			require.NoError(t, err)
			require.Equal(t, "leaf 7", res.body)
			once(res)
			res, err = get("/api/standard/8")
			require.NoError(t, err)
			require.Equal(t, "standard 8", res.body)
			res, err = get("/api/empty")
			require.NoError(t, err)
			require.Equal(t, 200, res.StatusCode)
			once(res)
			res, err = get("/api/fail")
			require.NoError(t, err)
			requireProblem(t, 409, `{"status":409,"title":"Conflict","detail":"Taken."}`, res)
			once(res)
			res, err = get("/api/nowhere")
			require.NoError(t, err)
			requireProblem(t, 404, `{"status":404,"title":"Not Found"}`, res)
			require.Empty(t, l.at(""))
			res, err = get("/api/cut")
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.Equal(t, "half", res.body)
			res, err = get("/api/panic")
			require.NoError(t, err)
			requireProblem(t, 500, internalError, res)
		})
	}
}

// passer is the writer of a middleware.
type passer struct{ http.ResponseWriter }

func (w passer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func through(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(passer{w}, r) })
}

// What a handler of the same server answers goes to the writer that it was given,
// the errors too; what its properties add to the header belongs to the whole.
func TestNestedHandlerUsesItsWriter(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	provideMark(srv)
	srv.HandleFunc("GET /part", marked(func(http.ResponseWriter, *server.Request) error { return server.Errorf(404, "No part.") }))
	srv.HandleFunc("GET /whole", func(w http.ResponseWriter, req *server.Request) error {
		var got bytes.Buffer
		for range 2 {
			part := httptest.NewRecorder()
			srv.ServeHTTP(part, httptest.NewRequest("GET", "/part", nil).WithContext(req.Context()))
			fmt.Fprint(&got, part.Code, " ")
		}
		_, err := got.WriteTo(w)
		return err
	})
	res := ask(srv, "GET", "/whole")
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "404 404 ", res.body)
	require.Equal(t, []string{"1"}, res.Header.Values("X-Mark"))
}

// Standard middleware that answers in the handler's place.
func TestUnderATimeoutHandler(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	release, released := make(chan struct{}), make(chan struct{})
	srv.HandleFunc("GET /slow", func(http.ResponseWriter, *server.Request) error {
		defer close(released)
		<-release
		return errSave
	})
	srv.Handle("GET /outer/", http.StripPrefix("/outer", http.TimeoutHandler(srv, time.Millisecond, "too slow")))
	res := ask(srv, "GET", "/outer/slow")
	require.Equal(t, 503, res.StatusCode)
	require.Equal(t, "too slow", res.body)
	close(release)
	<-released
	require.NoError(t, srv.Shutdown(t.Context()))
	require.Empty(t, l.at("WARN"))
}
