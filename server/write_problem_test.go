package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// writePage is a WriteProblem that leaves the status to the server.
func writePage(w http.ResponseWriter, _ *http.Request, p *server.Problem) {
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "%d, %s, %s", p.Status, p.Title, p.Detail)
}

func TestWriteProblem(t *testing.T) {
	for name, tt := range map[string]struct {
		method, path string
		want         string
		marked       bool
	}{
		"Errorf":          {"GET", "/errorf", "409, Conflict, Taken.", true},
		"unknown error":   {"GET", "/unknown", "500, Internal Server Error, ", true},
		"params":          {"GET", "/params", `400, Bad Request, query parameter "n" is missing`, true},
		"WriteError":      {"GET", "/standard", "402, Payment Required, Pay.", true},
		"404":             {"GET", "/elsewhere", "404, Not Found, ", false},
		"405":             {"DELETE", "/errorf", "405, Method Not Allowed, ", false},
		"panic":           {"GET", "/panic", "500, Internal Server Error, ", false},
		"denied":          {"GET", "/denied", "429, Quota exceeded, Too many requests. Try again in 7 seconds.", true},
		"in a middleware": {"GET", "/refused", "403, Forbidden, Not you.", false},
	} {
		for protocol, listen := range protocols {
			t.Run(name+", "+protocol, func(t *testing.T) {
				srv, _ := newServer(t, server.Options{WriteProblem: writePage})
				provideMark(srv)
				srv.Use(func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if r.URL.Path == "/refused" {
							server.WriteError(w, r, server.Errorf(403, "Not you."))
							return
						}
						next.ServeHTTP(w, r)
					})
				})
				answerWith := func(pattern string, err error) {
					srv.HandleFunc(pattern, marked(func(w http.ResponseWriter, _ *server.Request) error {
						w.Header().Set("Content-Encoding", "gzip")
						return err
					}))
				}
				answerWith("GET /errorf", server.Errorf(409, "Taken."))
				answerWith("GET /unknown", errSave)
				answerWith("GET /denied", &ratelimit.DeniedError{RetryAfter: 6500 * time.Millisecond})
				srv.HandleFunc("GET /params", marked(func(_ http.ResponseWriter, req *server.Request) error {
					_, err := req.Params().Query().Int("n")
					return err
				}))
				srv.HandleFunc("GET /panic", marked(func(http.ResponseWriter, *server.Request) error { panic("boom") }))
				srv.Handle("GET /standard", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, err := mark.Get(r.Context())
					server.WriteError(w, r, errors.Join(err, server.Errorf(402, "Pay.")))
				}))
				url, c := listen(t, srv)
				res, err := request(t, c, tt.method, url+tt.path)
				require.NoError(t, err)
				require.Equal(t, tt.want, res.body)
				require.Equal(t, tt.want[:3], strconv.Itoa(res.StatusCode), "the problem's")
				require.Equal(t, "text/plain", res.Header.Get("Content-Type"))
				require.Empty(t, res.Header.Get("Content-Encoding"))
				require.Equal(t, tt.marked, res.Header.Get("X-Mark") == "1", "it is committed")
				require.Equal(t, name == "denied", res.Header.Get("Retry-After") == "7")
				require.Equal(t, name == "405", res.Header.Get("Allow") == "GET, HEAD")
			})
		}
	}
}

func TestWriteProblemOfACrossOriginRefusal(t *testing.T) {
	srv, _ := newServer(t, server.Options{WriteProblem: writePage})
	for _, h := range []http.Handler{srv, srv.Wrap(http.NotFoundHandler())} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		require.Equal(t, 403, rec.Code)
		require.Contains(t, rec.Body.String(), "403, Forbidden, This is a cross-origin browser request")
	}
}

// The handlers' own error responses, and those of other routers, are theirs.
func TestWriteProblemLeavesOtherResponses(t *testing.T) {
	srv, _ := newServer(t, server.Options{WriteProblem: writePage})
	srv.Handle("GET /own", http.NotFoundHandler())
	require.Equal(t, "404 page not found\n", ask(srv, "GET", "/own").body)
	require.Equal(t, "404 page not found\n", ask(srv.Wrap(http.NewServeMux()), "GET", "/").body)
}

// A middleware may pass on a copy of the request.
func TestWriteProblemGetsTheRequestOfTheMiddleware(t *testing.T) {
	type key struct{}
	srv, _ := newServer(t, server.Options{WriteProblem: func(w http.ResponseWriter, r *http.Request, _ *server.Problem) {
		fmt.Fprint(w, r.Context().Value(key{}))
	}})
	srv.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, "value")))
		})
	})
	srv.HandleFunc("GET /fail", func(http.ResponseWriter, *server.Request) error { return errSave })
	require.Equal(t, "value", ask(srv, "GET", "/fail").body)
	require.Equal(t, "value", ask(srv, "GET", "/elsewhere").body)
}

// A page that needs a login is left for the login page, which gets to know where it was asked for.
func TestLoginRedirect(t *testing.T) {
	next := session.NewFlash[string]("next")
	o := &watcher{}
	srv, l := newServer(t, server.Options{
		Session:   plainCookies.Session,
		Observers: []server.Observer{o},
		WriteProblem: func(w http.ResponseWriter, r *http.Request, p *server.Problem) {
			if p.Status == http.StatusUnauthorized && next.Set(r.Context(), r.URL.Path) == nil {
				http.Redirect(w, r, "/login", http.StatusSeeOther)
			}
		},
	})
	srv.HandleFunc("GET /orders", func(_ http.ResponseWriter, req *server.Request) error {
		_, err := session.RequireUser(req.Context())
		return err
	})
	srv.HandleFunc("GET /login", func(w http.ResponseWriter, req *server.Request) error {
		path, _, err := next.Take(req.Context())
		return errors.Join(err, writeText(w, path))
	})
	res := ask(srv, "GET", "/orders")
	require.Equal(t, http.StatusSeeOther, res.StatusCode)
	require.Equal(t, "/login", res.Header.Get("Location"))
	require.Len(t, res.Cookies(), 1)
	require.Equal(t, "private", res.Header.Get("Cache-Control"))
	seen := o.last(t)
	require.Equal(t, http.StatusSeeOther, seen.Status)
	require.EqualValues(t, len(res.body), seen.Written)
	require.ErrorIs(t, seen.Err, session.ErrNotBound)
	require.False(t, seen.CutOff)
	require.Equal(t, "/orders", askAs(srv, res.Cookies()[0], "GET", "/login").body)
	require.Equal(t, 404, ask(srv, "GET", "/elsewhere").StatusCode, "it has written nothing")
	require.Empty(t, l.at(""))
}

func writeText(w http.ResponseWriter, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

func TestWriteProblemThroughACompressingMiddleware(t *testing.T) {
	for name, middleware := range map[string]func(http.Handler) http.Handler{"header first": gzipped, "header with the status": compress} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, server.Options{WriteProblem: writePage})
			provideMark(srv)
			srv.Use(middleware)
			srv.HandleFunc("GET /error", marked(func(w http.ResponseWriter, _ *server.Request) error {
				w.Header().Set("Content-Encoding", "br")
				return server.Errorf(409, "Taken.")
			}))
			url, c := listen(t, srv)
			res, err := request(t, c, "GET", url+"/error")
			require.NoError(t, err)
			require.Equal(t, 409, res.StatusCode)
			require.True(t, res.Uncompressed)
			require.Equal(t, "409, Conflict, Taken.", res.body)
			require.Equal(t, "1", res.Header.Get("X-Mark"))
			require.Empty(t, l.at(""))
		})
	}
}
