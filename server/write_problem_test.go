package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// writePage is a function for WriteProblem. It sends the problem's status.
func writePage(w http.ResponseWriter, _ *http.Request, p *server.Problem) {
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "%d, %s, %s", p.Status, p.Title, p.Detail)
}

func TestWriteProblem(t *testing.T) {
	srv, _ := newServer(t, server.Options{WriteProblem: writePage})
	provideMark(srv)
	srv.Use(middleware(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refused" {
			server.WriteError(w, r, server.Errorf(403, "Not you."))
			return
		}
		next.ServeHTTP(w, r)
	}))
	for path, err := range map[string]error{
		"/errorf": server.Errorf(409, "Taken."), "/unknown": errSave, "/denied": &ratelimit.DeniedError{RetryAfter: 6500 * time.Millisecond},
	} {
		srv.HandleFunc("GET "+path, marked(func(w http.ResponseWriter, _ *server.Request) error {
			w.Header().Set("Content-Encoding", "gzip")
			return err
		}))
	}
	srv.HandleFunc("GET /params", marked(func(_ http.ResponseWriter, req *server.Request) error {
		_, err := req.Params().Query().Int("n")
		return err
	}))
	srv.HandleFunc("GET /panic", marked(func(http.ResponseWriter, *server.Request) error { panic("boom") }))
	srv.HandleFunc("GET /required", nothing, server.Require(mark, session.LoggedIn))
	srv.Handle("GET /standard", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := mark.Get(r.Context())
		server.WriteError(w, r, errors.Join(err, server.Errorf(402, "Pay.")))
	}))
	url, c := listen(t, srv)
	for name, tt := range map[string]struct {
		method, path string
		want         string
		marked       bool
	}{
		"Errorf":          {"GET", "/errorf", "409, Conflict, Taken.", true},
		"unknown error":   {"GET", "/unknown", "500, Internal Server Error, ", true},
		"params":          {"GET", "/params", `400, Bad Request, query parameter "n" is missing`, true},
		"WriteError":      {"GET", "/standard", "402, Payment Required, Pay.", true},
		"requirement":     {"GET", "/required", "401, Login required, Log in and try again.", true},
		"404":             {"GET", "/elsewhere", "404, Not Found, ", false},
		"405":             {"DELETE", "/errorf", "405, Method Not Allowed, ", false},
		"cross-origin":    {"POST", "/errorf", "403, Forbidden, This is a cross-origin browser request", false},
		"panic":           {"GET", "/panic", "500, Internal Server Error, ", false},
		"denied":          {"GET", "/denied", "429, Quota exceeded, Too many requests. Try again in 7 seconds.", true},
		"in a middleware": {"GET", "/refused", "403, Forbidden, Not you.", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), tt.method, url+tt.path, nil)
			require.NoError(t, err)
			if name == "cross-origin" {
				r.Header.Set("Sec-Fetch-Site", "cross-site")
			}
			res, err := do(c, r)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(res.body, tt.want), res.body)
			require.Equal(t, tt.want[:3], strconv.Itoa(res.StatusCode), "the problem's")
			require.Equal(t, "text/plain", res.Header.Get("Content-Type"))
			require.Empty(t, res.Header.Get("Content-Encoding"))
			require.Equal(t, tt.marked, res.Header.Get("X-Mark") == "1", "it is committed")
			require.Equal(t, name == "denied", res.Header.Get("Retry-After") == "7")
			require.Equal(t, name == "405", res.Header.Get("Allow") == "GET, HEAD")
		})
	}
}

// Error responses that handlers and other routers write themselves are not changed.
func TestWriteProblemLeavesOtherResponses(t *testing.T) {
	srv, _ := newServer(t, server.Options{WriteProblem: writePage})
	srv.Handle("GET /own", http.NotFoundHandler())
	require.Equal(t, "404 page not found\n", ask(srv, "GET", "/own").body)
	require.Equal(t, "404 page not found\n", ask(srv.Wrap(http.NewServeMux()), "GET", "/").body)
}

// WriteProblem gets the request that the middleware has passed on.
func TestWriteProblemGetsTheRequestOfTheMiddleware(t *testing.T) {
	type key struct{}
	srv, _ := newServer(t, server.Options{WriteProblem: func(w http.ResponseWriter, r *http.Request, _ *server.Problem) {
		fmt.Fprint(w, r.Context().Value(key{}))
	}})
	srv.Use(middleware(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, "value")))
	}))
	srv.HandleFunc("GET /fail", func(http.ResponseWriter, *server.Request) error { return errSave })
	require.Equal(t, "value", ask(srv, "GET", "/fail").body)
	require.Equal(t, "value", ask(srv, "GET", "/elsewhere").body)
}

// WriteProblem redirects to the login page and keeps the page to return to.
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

// A denial by a ratelimit.Middleware inside a server has the server's format.
func TestMiddlewareDenialsGoTheServersWay(t *testing.T) {
	for name, tt := range map[string]struct {
		write       func(w http.ResponseWriter, r *http.Request, p *server.Problem)
		contentType string
		want        string
	}{
		"WriteProblem": {writePage, "text/plain", "429, Quota exceeded, Too many requests. Try again in N seconds."},
		"default": {nil, "application/problem+json", `{"detail":"Too many requests. Try again in N seconds.","status":429,"title":"Quota exceeded",` +
			`"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","violated-policies":["p"]}` + "\n"},
	} {
		for where, build := range map[string]func(srv *server.Server, m func(http.Handler) http.Handler, h http.Handler) http.Handler{
			"Use": func(srv *server.Server, m func(http.Handler) http.Handler, h http.Handler) http.Handler {
				srv.Use(through, m)
				srv.Handle("GET /", h)
				return srv
			},
			"Wrap": func(srv *server.Server, m func(http.Handler) http.Handler, h http.Handler) http.Handler {
				return srv.Wrap(router2(m(h)))
			},
		} {
			t.Run(name+", "+where, func(t *testing.T) {
				p := policy(t, "p")
				p.Rules = []ratelimit.Rule{ratelimit.PerMinute(1)}
				srv, l := newServer(t, server.Options{WriteProblem: tt.write})
				h := build(srv, eager(t, newCalls(t), p), taking(t, p, 0))
				require.Equal(t, "ok", ask(h, "GET", "/").body)
				res := ask(h, "GET", "/")
				require.Equal(t, 429, res.StatusCode)
				retry := res.Header.Values("Retry-After")
				require.Len(t, retry, 1)
				require.Equal(t, tt.want, strings.Replace(res.body, retry[0], "N", 1))
				require.Equal(t, tt.contentType, res.Header.Get("Content-Type"))
				require.Equal(t, []string{"no-store"}, res.Header.Values("Cache-Control"))
				require.Equal(t, []string{`"p";q=1;w=60`}, res.Header.Values("RateLimit-Policy"))
				require.Empty(t, l.at(""))
			})
		}
	}
}

// A failure is logged once: by the server if it answers, and otherwise by the middleware.
func TestMiddlewareFailuresAreLoggedOnce(t *testing.T) {
	broken := errors.New("the key is broken")
	for name, tt := range map[string]struct {
		options  ratelimit.MiddlewareOptions
		err      error
		status   int
		want     string
		byServer int
	}{
		"the server's": {ratelimit.MiddlewareOptions{}, broken, 500, "500, Internal Server Error, ", 1},
		"its own": {ratelimit.MiddlewareOptions{Answer: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "mine", http.StatusTeapot)
		}}, broken, 418, "mine\n", 0},
		"let through": {ratelimit.MiddlewareOptions{FailOpen: true}, ratelimit.ErrStore, 200, "ok", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy(t, "p")
			p.Key = func(context.Context, *http.Request) (string, error) { return "", tt.err }
			srv, byServer := newServer(t, server.Options{WriteProblem: writePage})
			byMiddleware := &logs{}
			tt.options.Logger = byMiddleware.logger()
			m, err := ratelimit.Middleware(newCalls(t), p, tt.options)
			require.NoError(t, err)
			res := ask(srv.Wrap(m(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = writeText(w, "ok") }))), "GET", "/")
			require.Equal(t, tt.status, res.StatusCode)
			require.Equal(t, tt.want, res.body)
			require.Len(t, byServer.at(""), tt.byServer)
			require.Len(t, byMiddleware.at(""), 1-tt.byServer)
		})
	}
}

// TestHeaderOfAProblem checks the response's header if a middleware, the handler, the problem and WriteProblem set
// fields.
func TestHeaderOfAProblem(t *testing.T) {
	write := func(w http.ResponseWriter) { w.WriteHeader(http.StatusSeeOther) }
	for name, tt := range map[string]struct {
		change func(w http.ResponseWriter, p *server.Problem)
		want   http.Header
	}{
		"no WriteProblem": {nil, http.Header{}},
		"nothing":         {func(http.ResponseWriter, *server.Problem) {}, http.Header{}},
		"written":         {func(w http.ResponseWriter, _ *server.Problem) { w.WriteHeader(410) }, http.Header{}},
		"redirect":        {func(w http.ResponseWriter, _ *server.Problem) { write(w) }, http.Header{"Retry-After": nil}},
		"field added to the problem": {func(_ http.ResponseWriter, p *server.Problem) {
			p.Header.Set("Link", "</help>")
			p.Header.Add("Vary", "Accept")
		}, http.Header{"Link": {"</help>"}, "Vary": {"Origin", "Accept-Language", "Accept"}}},
		"field replaced in the problem": {func(_ http.ResponseWriter, p *server.Problem) {
			p.Header.Set("WWW-Authenticate", "Bearer")
		}, http.Header{"Www-Authenticate": {"Bearer"}}},
		"fields of the response": {func(w http.ResponseWriter, _ *server.Problem) {
			w.Header().Set("Retry-After", "60")
			w.Header().Set("Link", "</help>")
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Location", "/")
		}, http.Header{"Retry-After": {"60"}, "Link": {"</help>"}}},
		"panic": {func(w http.ResponseWriter, p *server.Problem) {
			w.Header().Set("Link", "</help>")
			w.Header().Set("Retry-After", "60")
			w.Header().Add("Set-Cookie", "c=3")
			w.Header().Del("WWW-Authenticate")
			panic("boom")
		}, http.Header{}},
	} {
		t.Run(name, func(t *testing.T) {
			o := server.Options{}
			if tt.change != nil {
				o.WriteProblem = func(w http.ResponseWriter, _ *http.Request, p *server.Problem) { tt.change(w, p) }
			}
			srv, _ := newServer(t, o)
			srv.Use(middleware(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Vary", "Origin")
				w.Header().Set("Set-Cookie", "a=1")
				next.ServeHTTP(w, r)
			}))
			srv.HandleFunc("GET /", func(w http.ResponseWriter, _ *server.Request) error {
				w.Header().Set("Www-Authenticate", "Own")
				w.Header().Set("Cache-Control", "private, no-store")
				return &server.Problem{
					Status: 429, Err: &ratelimit.DeniedError{RetryAfter: 7 * time.Second},
					Header: http.Header{"Www-Authenticate": {"Basic"}, "vary": {"Accept-Language"}, "Set-Cookie": {"a=1", "b=2"}},
				}
			})
			want := http.Header{
				"Www-Authenticate": {"Basic"}, "Vary": {"Origin", "Accept-Language"}, "Set-Cookie": {"a=1", "b=2"},
				"Retry-After": {"7"}, "Cache-Control": {"no-store"}, "Link": nil, "Location": nil,
			}
			for field, lines := range tt.want {
				want[field] = lines
			}
			got := ask(srv, "GET", "/").Header
			for field, lines := range want {
				require.Equal(t, lines, got[field], field)
			}
		})
	}
}
