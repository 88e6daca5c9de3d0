package server_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

// A middleware's reads use the properties of the request. If the middleware answers, they are committed.
func TestMiddlewareHasTheProperties(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	provideMark(srv)
	srv.Use(middleware(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		if _, err := mark.Get(r.Context()); err != nil {
			t.Error(err)
		}
		switch r.URL.Path {
		case "/answer":
			w.WriteHeader(http.StatusTeapot)
		case "/error":
			server.WriteError(w, r, server.Errorf(402, "Pay."))
		case "/404":
			http.Error(w, "mine", http.StatusNotFound)
		case "/silent":
		default:
			next.ServeHTTP(w, r)
		}
	}))
	srv.HandleFunc("GET /", func(http.ResponseWriter, *server.Request) error { return nil })
	for path, want := range map[string]int{"/": 200, "/answer": 418, "/error": 402, "/404": 404, "/silent": 200} {
		res := ask(srv, "GET", path)
		require.Equal(t, want, res.StatusCode, path)
		require.Equal(t, []string{"1"}, res.Header.Values("X-Mark"), path)
		require.Equal(t, path == "/404", res.body == "mine\n", "a middleware's own 404 is left as it is")
	}
	require.Empty(t, l.at(""))
}

// zipped is a writer that compresses. It has neither Unwrap nor Flush.
type zipped struct {
	w   http.ResponseWriter
	zip *gzip.Writer
}

func (z *zipped) Header() http.Header { return z.w.Header() }
func (z *zipped) WriteHeader(status int) {
	z.Header().Del("Content-Length")
	z.Header().Set("Content-Encoding", "gzip")
	z.w.WriteHeader(status)
}
func (z *zipped) Write(p []byte) (int, error) { return z.zip.Write(p) }

func compress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		z := &zipped{w, gzip.NewWriter(w)}
		defer z.zip.Close()
		next.ServeHTTP(z, r)
	})
}

// zipBody is a writer that compresses the body. The middleware sets the header.
type zipBody struct {
	http.ResponseWriter
	zip *gzip.Writer
}

func (z zipBody) Write(p []byte) (int, error) { return z.zip.Write(p) }

func gzipped(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := zipBody{w, gzip.NewWriter(w)}
		defer z.zip.Close()
		next.ServeHTTP(z, r)
	})
}

// A middleware may set Content-Encoding with the status, or before it calls the handler. In both cases, problems are
// compressed, too.
func TestMiddlewareThatCompresses(t *testing.T) {
	whole := strings.Repeat("whole ", 1000)
	for protocol, listen := range protocols {
		for name, m := range map[string]func(http.Handler) http.Handler{"with the status": compress, "before": gzipped} {
			for _, write := range []func(http.ResponseWriter, *http.Request, *server.Problem){nil, writePage} {
				t.Run(fmt.Sprint(protocol, name, write == nil), func(t *testing.T) {
					srv, l := newServer(t, server.Options{WriteProblem: write})
					provideMark(srv)
					srv.Use(m)
					srv.HandleFunc("GET /whole", marked(func(w http.ResponseWriter, _ *server.Request) error { return writeText(w, whole) }))
					srv.HandleFunc("GET /error", marked(func(w http.ResponseWriter, _ *server.Request) error {
						w.Header().Set("Content-Encoding", "br")
						return server.Errorf(409, "Taken.")
					}))
					srv.HandleFunc("GET /cut", func(w http.ResponseWriter, _ *server.Request) error {
						_, _ = io.WriteString(w, "half")
						return errSave
					})
					url, c := listen(t, srv)
					for path, want := range map[string]string{"/whole": whole, "/error": "Conflict", "/nowhere": "Not Found"} {
						res, err := request(t, c, "GET", url+path)
						require.NoError(t, err)
						require.Contains(t, res.body, want)
						require.True(t, res.Uncompressed)
						require.Equal(t, path != "/nowhere", res.Header.Get("X-Mark") == "1")
					}
					require.Empty(t, l.at(""))
					_, err := request(t, c, "GET", url+"/cut")
					require.Error(t, err, "the client must see that it is not the whole")
					require.Contains(t, l.at("ERROR")[0]["msg"], "cut off")
				})
			}
		}
	}
}

// If a handler fails after a middleware has answered, the process does not crash and no problem is appended.
func TestHandlerThatFailsAfterAMiddlewareHasAnswered(t *testing.T) {
	for name, late := range map[string]bool{"before the handler": false, "and left the handler behind": true} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, server.Options{})
			gone, over := make(chan struct{}), make(chan struct{})
			srv.Use(middleware(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "mine")
				if !late {
					_ = http.NewResponseController(w).Flush()
					next.ServeHTTP(w, r)
					_, err := io.WriteString(w, "more")
					require.Error(t, err, "nothing is appended")
					return
				}
				go func() {
					defer close(over)
					next.ServeHTTP(passer{w}, r)
				}()
			}))
			srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
				if late {
					<-gone
				}
				return errSave
			})
			url, c := listen(t, srv)
			res, err := request(t, c, "GET", url)
			require.Equal(t, "mine", res.body)
			if !late {
				require.Error(t, err, "the connection is cut")
				require.Contains(t, l.at("ERROR")[0]["msg"], "cut off")
				return
			}
			require.NoError(t, err)
			close(gone)
			<-over
			require.Equal(t, errSave.Error(), l.at("")[0]["error"])
		})
	}
}

// Each function of Use is called once. The middleware of a later Use is inside that of an earlier one.
func TestUseSeveralTimes(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	var order []string
	named := func(name string) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			order = append(order, "wrap "+name)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				order = append(order, name)
				next.ServeHTTP(w, r)
			})
		}
	}
	srv.Use(named("a"), named("b"))
	srv.Use()
	srv.Use(named("c"))
	require.Equal(t, 404, ask(srv, "GET", "/").StatusCode)
	require.Equal(t, []string{"wrap a", "wrap b", "wrap c", "a", "b", "c"}, order)
}

func TestUseOfNilMiddleware(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	wrapped := false
	mark := func(next http.Handler) http.Handler { wrapped = true; return next }
	require.PanicsWithValue(t, "server: Use: item 1 is nil", func() { srv.Use(mark, nil) })
	require.False(t, wrapped, "a middleware was added")
	require.PanicsWithValue(t, "server: Use: middleware 0 returned a nil handler", func() {
		srv.Use(func(http.Handler) http.Handler { return nil })
	})
}

func TestWriteError(t *testing.T) {
	fail := func(w http.ResponseWriter, r *http.Request, err error) { server.WriteError(w, r, err) }
	for protocol, listen := range protocols {
		for name, wrap := range map[string]func(*server.Server, http.Handler) http.Handler{
			"Handle":          func(srv *server.Server, h http.Handler) http.Handler { srv.Handle("/", h); return srv },
			"Wrap":            func(srv *server.Server, h http.Handler) http.Handler { return srv.Wrap(h) },
			"Wrap, router":    func(srv *server.Server, h http.Handler) http.Handler { return srv.Wrap(router2(h)) },
			"Wrap, no Unwrap": func(srv *server.Server, h http.Handler) http.Handler { return srv.Wrap(compress(h)) },
		} {
			t.Run(protocol+", "+name, func(t *testing.T) {
				srv, l := newServer(t, server.Options{})
				provideMark(srv)
				url, c := listen(t, wrap(srv, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, err := mark.Get(r.Context())
					require.NoError(t, err)
					switch r.URL.Path {
					case "/409":
						fail(w, r, server.Errorf(409, "Taken."))
					case "/500":
						fail(w, r, errSave)
					case "/cut":
						_, _ = w.Write([]byte(strings.Repeat("half", 10_000)))
						fail(w, r, errSave)
					}
				})))
				res, err := request(t, c, "GET", url+"/409")
				require.NoError(t, err)
				require.Equal(t, 409, res.StatusCode)
				require.JSONEq(t, `{"status":409,"title":"Conflict","detail":"Taken."}`, res.body)
				require.Equal(t, []string{"1"}, res.Header.Values("X-Mark"))
				require.Empty(t, l.at(""))
				res, err = request(t, c, "GET", url+"/500")
				require.NoError(t, err)
				require.JSONEq(t, internalError, res.body)
				require.Len(t, l.at("ERROR"), 1)
				res, err = request(t, c, "GET", url+"/cut")
				require.Error(t, err)
				require.NotContains(t, res.body, "problem")
				require.Contains(t, l.at("ERROR")[1]["msg"], "cut off")
			})
		}
	}
}

func TestWriteErrorWithoutAServer(t *testing.T) {
	rec := httptest.NewRecorder()
	server.WriteError(rec, httptest.NewRequest("GET", "/", nil), server.Errorf(409, "Taken."))
	requireProblem(t, 409, `{"status":409,"title":"Conflict","detail":"Taken."}`, answer{rec.Result(), rec.Body.String()})
}

// If a request has a preset for a property that the server does not provide, the response is a 500.
func TestPresetThatIsNotProvidedIsAFailure(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	called := false
	srv.HandleFunc("GET /", func(http.ResponseWriter, *server.Request) error { called = true; return nil })
	plain := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true })
	for _, h := range []http.Handler{srv, srv.Wrap(plain)} {
		l.lines = nil
		r := httptest.NewRequest("GET", "/", nil)
		r = r.WithContext(reqctx.Preset(r.Context(), mark, "fake"))
		rec := send(h, r)
		requireProblem(t, 500, internalError, rec)
		require.Contains(t, l.only(t)["error"], `"mark"`)
		require.False(t, called)
	}
	provideMark(srv)
	srv.HandleFunc("GET /mark", func(w http.ResponseWriter, req *server.Request) error {
		v, err := mark.Get(req.Context())
		return errors.Join(err, server.WriteJSON(w, 200, v))
	})
	r := httptest.NewRequest("GET", "/mark", nil)
	rec := send(srv, r.WithContext(reqctx.Preset(r.Context(), mark, "fake")))
	require.Equal(t, "\"fake\"\n", rec.body)
	require.Equal(t, "fake", rec.Header.Get("X-Mark"), "a preset is committed like a value of Set")
}
