package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
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

// router is a ServeMux that treats requests and writers as the routers of others do:
// handlers get a copy of the request, with a context of the router's, and a writer
// around the server's.
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

// plainCookies has sessions work without TLS.
var plainCookies = server.Options{Session: session.Options{Cookie: session.Cookie{Insecure: true}}}

// Whatever a handler of another router does first, it has its session and the cookie
// goes out once.
func TestWrapCarriesTheSession(t *testing.T) {
	for name, write := range map[string]func(w http.ResponseWriter, r *http.Request){
		"nothing": func(w http.ResponseWriter, r *http.Request) { visit(t, r) },
		"write":   func(w http.ResponseWriter, r *http.Request) { visit(t, r); _, _ = io.WriteString(w, "body") },
		"flush first": func(w http.ResponseWriter, r *http.Request) {
			visit(t, r)
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "body")
		},
		"flush by the controller": func(w http.ResponseWriter, r *http.Request) {
			visit(t, r)
			require.NoError(t, http.NewResponseController(w).Flush())
		},
		"early hints": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			visit(t, r) // still in time
			w.WriteHeader(http.StatusOK)
		},
		"an error": func(w http.ResponseWriter, r *http.Request) { visit(t, r); http.Error(w, "no", http.StatusTeapot) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			visit(t, r)
			http.Redirect(w, r, "/next", http.StatusSeeOther)
		},
		"copy": func(w http.ResponseWriter, r *http.Request) {
			visit(t, r)
			_, _ = io.Copy(w, strings.NewReader("body"))
		},
		"a panic after the header": func(w http.ResponseWriter, r *http.Request) {
			visit(t, r)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, plainCookies)
			mux := http.NewServeMux()
			mux.HandleFunc("GET /write", func(w http.ResponseWriter, r *http.Request) {
				require.Equal(t, "route", r.Context().Value(routeKey{}))
				write(w, r)
			})
			mux.HandleFunc("GET /read", func(w http.ResponseWriter, r *http.Request) {
				s, err := session.From(r.Context())
				require.NoError(t, err)
				user, err := s.Get("user")
				require.NoError(t, err)
				_, _ = io.WriteString(w, user.(string))
			})
			url, c := listen(t, srv.Wrap(router(mux)))

			var hints []textproto.MIMEHeader
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				Got1xxResponse: func(_ int, h textproto.MIMEHeader) error { hints = append(hints, h); return nil },
			})
			req, err := http.NewRequestWithContext(ctx, "GET", url+"/write", nil)
			require.NoError(t, err)
			res, err := c.Do(req)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, res.Body)
			require.NoError(t, res.Body.Close())
			require.Len(t, res.Cookies(), 1)
			require.Len(t, res.Header["Set-Cookie"], 1)
			for _, h := range hints {
				require.NotEmpty(t, h["Link"])
				require.Empty(t, h["Set-Cookie"])
			}
			require.Equal(t, name == "early hints", len(hints) == 1)

			req, err = http.NewRequestWithContext(t.Context(), "GET", url+"/read", nil)
			require.NoError(t, err)
			req.AddCookie(res.Cookies()[0])
			res, err = c.Do(req)
			require.NoError(t, err)
			body, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, "ada", string(body))
			require.Empty(t, res.Cookies())
			require.Empty(t, l.at(""))
		})
	}
}

// What the wrapped handler answers is its own; what fails around it is a problem.
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

// recoverer is a middleware that responds to panics, as chi's does.
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

// A panic that reaches the server saves nothing. One that is recovered before is a response.
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

func TestWrapAnswersAFailedCommit(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	unsaved(srv, errSave)
	res := ask(srv.Wrap(router(markingMux(t))), "GET", "/")
	require.Equal(t, 500, res.StatusCode)
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
	require.NotContains(t, res.body, "body")
	require.Contains(t, l.only(t)["error"], errSave.Error())
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

// However wraps and servers are put into each other, a request has one session and
// its commit is one.
func TestNestedWraps(t *testing.T) {
	for name, build := range map[string]func(srv *server.Server, h http.Handler) http.Handler{
		"one":   func(srv *server.Server, h http.Handler) http.Handler { return srv.Wrap(h) },
		"two":   func(srv *server.Server, h http.Handler) http.Handler { return srv.Wrap(router2(srv.Wrap(h))) },
		"three": func(srv *server.Server, h http.Handler) http.Handler { return srv.Wrap(srv.Wrap(through(srv.Wrap(h)))) },
		"around a server": func(srv *server.Server, h http.Handler) http.Handler {
			srv.Handle("/", h)
			return srv.Wrap(router2(srv))
		},
		"in a server": func(srv *server.Server, h http.Handler) http.Handler { srv.Handle("/", srv.Wrap(h)); return srv },
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
		"a timeout around": func(srv *server.Server, h http.Handler) http.Handler {
			return http.TimeoutHandler(srv.Wrap(srv.Wrap(h)), time.Hour, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, plainCookies)
			commits, closed := 0, 0
			reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
				Resolve: func(context.Context) (string, error) { return "1", nil },
				Commit: func(_ context.Context, v string, _ int, h http.Header) error {
					commits++
					h.Add("X-Mark", v)
					return nil
				},
				Close: func(context.Context, string, error) error { closed++; return nil },
			})
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

// A server in a wrap does its own routing, and its problems show it.
func TestServerInAWrapAnswersWithProblems(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	srv.HandleFunc("GET /fail", func(http.ResponseWriter, *server.Request) error { return server.Errorf(409, "Taken.") })
	h := srv.Wrap(router2(srv))
	requireProblem(t, 404, `{"status":404,"title":"Not Found"}`, ask(h, "GET", "/nowhere"))
	requireProblem(t, 405, `{"status":405,"title":"Method Not Allowed"}`, ask(h, "POST", "/fail"))
	requireProblem(t, 409, `{"status":409,"title":"Conflict","detail":"Taken."}`, ask(h, "GET", "/fail"))
}

// The standard library's parser and ours see the same form, whichever comes first, and
// also if the router works on a copy of the request.
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
		"ParseForm first":  {standard, ours},
		"Params first":     {ours, standard},
		"ParseForm, twice": {standard, ours, standard, ours},
	} {
		for way, build := range map[string]func(srv *server.Server, h http.HandlerFunc) http.Handler{
			"HandleFunc": func(srv *server.Server, h http.HandlerFunc) http.Handler {
				srv.HandleFunc("POST /", func(w http.ResponseWriter, req *server.Request) error { h(w, req.Request); return nil })
				return srv
			},
			"Handle": func(srv *server.Server, h http.HandlerFunc) http.Handler { srv.Handle("POST /", h); return srv },
			"Handle, StripPrefix": func(srv *server.Server, h http.HandlerFunc) http.Handler {
				srv.Handle("POST /", http.StripPrefix("/", h))
				return srv
			},
			"Wrap": func(srv *server.Server, h http.HandlerFunc) http.Handler { return srv.Wrap(h) },
			"Wrap, mux": func(srv *server.Server, h http.HandlerFunc) http.Handler {
				m := http.NewServeMux()
				m.Handle("POST /", h)
				return srv.Wrap(m)
			},
			"Wrap, copies":   func(srv *server.Server, h http.HandlerFunc) http.Handler { return srv.Wrap(router2(h)) },
			"Wrap in a Wrap": func(srv *server.Server, h http.HandlerFunc) http.Handler { return srv.Wrap(router2(srv.Wrap(h))) },
			"Server in Wrap": func(srv *server.Server, h http.HandlerFunc) http.Handler {
				srv.Handle("POST /", h)
				return srv.Wrap(router2(srv))
			},
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
