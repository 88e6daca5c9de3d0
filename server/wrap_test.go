package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

type routeKey struct{}

// router returns a handler that behaves like the routers of other packages: its handlers get a copy of the request
// with another context, and a writer around the server's.
func router(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), routeKey{}, "route"))
		mux.ServeHTTP(&statusWriter{ResponseWriter: w}, r)
	})
}

// statusWriter is the writer of a logging middleware.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Flush()                      { w.ResponseWriter.(http.Flusher).Flush() }
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func visit(tb testing.TB, r *http.Request) {
	s, err := session.From(r.Context())
	require.NoError(tb, err)
	require.NoError(tb, s.Set("user", "ada"))
}

// plainCookies contains options with which sessions work without TLS.
var plainCookies = server.Options{Session: session.Options{Cookie: session.Cookie{Insecure: true}}}

// Responses of a wrapped handler are not changed. A panic becomes a problem.
func TestWrapLeavesResponsesAsTheyAre(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /here", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "here") })
	mux.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { explode() })
	h := srv.Wrap(router(mux))
	for _, tt := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/here", 200, "here"},
		{"GET", "/nowhere", 404, "404 page not found\n"},
		{"POST", "/here", 405, "Method Not Allowed\n"},
	} {
		res := ask(h, tt.method, tt.path)
		require.Equal(t, tt.status, res.StatusCode)
		require.Equal(t, tt.body, res.body)
		require.Empty(t, res.Header["Vary"], "nothing was touched")
	}
	require.Equal(t, "GET, HEAD", ask(h, "POST", "/here").Header.Get("Allow"))
	require.Empty(t, l.at(""))
	requireProblem(t, 500, internalError, ask(h, "GET", "/panic"))
	require.Equal(t, "/panic", l.only(t)["path"])
}

// recoverer returns a middleware that responds to panics, as chi's Recoverer does.
func recoverer(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if recover() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}()
		h.ServeHTTP(w, r)
	})
}

// If a panic reaches the server, nothing is saved. If a middleware recovers the panic, the response is an ordinary
// one.
func TestWrapCommitsWhatAMiddlewareRecovers(t *testing.T) {
	for name, tt := range map[string]struct {
		build func(srv *server.Server, h http.Handler) http.Handler
		saved int
	}{
		"none":   {func(srv *server.Server, h http.Handler) http.Handler { return srv.Wrap(h) }, 0},
		"around": {func(srv *server.Server, h http.Handler) http.Handler { return recoverer(srv.Wrap(h)) }, 0},
		"within": {func(srv *server.Server, h http.Handler) http.Handler { return srv.Wrap(recoverer(h)) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, plainCookies)
			res := ask(tt.build(srv, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				visit(t, r)
				explode()
			})), "GET", "/")
			require.Equal(t, 500, res.StatusCode)
			require.Len(t, res.Cookies(), tt.saved)
			require.Len(t, l.at("ERROR"), 1-tt.saved)
		})
	}
}

func markingMux(t *testing.T) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, err := mark.Get(r.Context())
		require.NoError(t, err)
		_, _ = io.WriteString(w, "body")
	})
	return mux
}

// However wraps and servers are nested, a request has one session and one commit.
func TestNestedWraps(t *testing.T) {
	for name, build := range map[string]func(srv *server.Server, h http.Handler) http.Handler{
		"one": func(srv *server.Server, h http.Handler) http.Handler { return srv.Wrap(h) },
		"two": func(srv *server.Server, h http.Handler) http.Handler { return srv.Wrap(router2(srv.Wrap(h))) },
		"around a server": func(srv *server.Server, h http.Handler) http.Handler {
			srv.Handle("/", h)
			return srv.Wrap(router2(srv))
		},
		"in a server in a wrap": func(srv *server.Server, h http.Handler) http.Handler {
			srv.Handle("/", srv.Wrap(h))
			return srv.Wrap(srv)
		},
		"around a server in other": func(srv *server.Server, h http.Handler) http.Handler {
			srv.Handle("/", h)
			return through(srv.Wrap(through(srv)))
		},
		"a timeout within": func(srv *server.Server, h http.Handler) http.Handler {
			return srv.Wrap(http.TimeoutHandler(srv.Wrap(h), time.Hour, ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, plainCookies)
			commits, closed := 0, 0
			provide(srv, func(h http.Header) error { commits++; h.Add("X-Mark", "1"); return nil }, func() error { closed++; return nil })
			inner := markingMux(t)
			inner.HandleFunc("/404", http.NotFound)
			h := build(srv, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, err := session.From(r.Context())
				require.NoError(t, err)
				visit(t, r)
				inner.ServeHTTP(w, r)
			}))
			url, c := listen(t, h)
			res, err := request(t, c, "GET", url+"/")
			require.NoError(t, err)
			require.Equal(t, "body", res.body)
			require.Equal(t, []string{"1"}, res.Header["X-Mark"])
			require.Len(t, res.Header["Set-Cookie"], 1)
			res, err = request(t, c, "GET", url+"/404")
			require.NoError(t, err)
			require.Equal(t, "404 page not found\n", res.body, "a handler was found")
			require.NoError(t, srv.Shutdown(t.Context()))
			require.Equal(t, []int{1, 1}, []int{commits, closed})
			require.Empty(t, l.at(""))
		})
	}
}

func router2(h http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", h)
	return router(mux)
}

// The standard library's parser and package params get the same form, in any order, even if the router copies the
// request.
func TestParseFormAndParamsAgree(t *testing.T) {
	form := url.Values{"a": {"1", "2"}, "b": {"ä & b"}, "empty": {""}}
	standard := func(r *http.Request) error {
		err := r.ParseForm()
		if err != nil || !reflect.DeepEqual(form, r.PostForm) || r.Form.Get("q") != "q" {
			return fmt.Errorf("ParseForm: %w, %v", err, r.Form)
		}
		return nil
	}
	ours := func(r *http.Request) error {
		p, err := params.From(r.Context())
		if err != nil {
			return err
		}
		for name, want := range form {
			if got, err := p.Form().Strings(name); err != nil || !slices.Equal(got, want) {
				return fmt.Errorf("params: %s: %w, %q", name, err, got)
			}
		}
		if q, err := p.Query().String("q"); err != nil || q != "q" {
			return fmt.Errorf("params: %w, %q", err, q)
		}
		return nil
	}
	for order, parsers := range map[string][]func(r *http.Request) error{
		"ParseForm first": {standard, ours, standard},
		"Params first":    {ours, standard, ours},
	} {
		for way, build := range map[string]func(srv *server.Server, h http.HandlerFunc) http.Handler{
			"Handle":       func(srv *server.Server, h http.HandlerFunc) http.Handler { srv.Handle("POST /", h); return srv },
			"Wrap, copies": func(srv *server.Server, h http.HandlerFunc) http.Handler { return srv.Wrap(router2(h)) },
			"Wrap in Server": func(srv *server.Server, h http.HandlerFunc) http.Handler {
				srv.Handle("POST /", srv.Wrap(router2(h)))
				return srv
			},
			"under a timeout": func(srv *server.Server, h http.HandlerFunc) http.Handler {
				return srv.Wrap(http.TimeoutHandler(h, time.Hour, ""))
			},
		} {
			t.Run(order+", "+way, func(t *testing.T) {
				srv, l := newServer(t, server.Options{})
				r := httptest.NewRequest("POST", "/?q=q", strings.NewReader(form.Encode()))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				rec := httptest.NewRecorder()
				build(srv, func(w http.ResponseWriter, r *http.Request) {
					for _, parse := range parsers {
						if err := parse(r); err != nil {
							http.Error(w, err.Error(), http.StatusTeapot)
							return
						}
					}
					w.WriteHeader(http.StatusNoContent)
				}).ServeHTTP(rec, r)
				require.Equal(t, http.StatusNoContent, rec.Code, rec.Body.String())
				require.Empty(t, l.at(""))
			})
		}
	}
}

// Wherever a server is mounted, its properties are resolved and committed once for a request.
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
			return writeText(w, "leaf "+id)
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

// passer is a writer around another one, as middleware uses it.
type passer struct{ http.ResponseWriter }

func (w passer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func through(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(passer{w}, r) })
}

// A nested handler of the same server writes to the writer that it was given. So do its errors. The header fields of
// its properties are sent with the outer response.
func TestNestedHandlerUsesItsWriter(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	provideMark(srv)
	srv.HandleFunc("GET /part", marked(func(http.ResponseWriter, *server.Request) error { return server.Errorf(404, "No part.") }))
	srv.HandleFunc("GET /whole", func(w http.ResponseWriter, req *server.Request) error {
		var got bytes.Buffer
		for range 2 {
			part := send(srv, httptest.NewRequest("GET", "/part", nil).WithContext(req.Context()))
			fmt.Fprint(&got, part.StatusCode, " ")
		}
		_, err := got.WriteTo(w)
		return err
	})
	res := ask(srv, "GET", "/whole")
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "404 404 ", res.body)
	require.Equal(t, []string{"1"}, res.Header.Values("X-Mark"))
}

// If a middleware cancels a handler and answers itself, the client gets the middleware's response, even if the
// handler has written and fails.
func TestHandlerThatAMiddlewareHasCancelled(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	srv.Use(middleware(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		next.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
		_ = writeText(w, "too slow")
	}))
	srv.HandleFunc("GET /", func(w http.ResponseWriter, _ *server.Request) error {
		return errors.Join(writeText(w, "half"), errSave)
	})
	require.Equal(t, "too slow", ask(srv, "GET", "/").body)
	require.Equal(t, "handler failed after its request had been answered", l.only(t)["msg"])
}
