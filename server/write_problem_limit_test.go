package server_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

// A denial by a middleware of package ratelimit looks like the other errors of the server around it.
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
			"Handle": func(srv *server.Server, m func(http.Handler) http.Handler, h http.Handler) http.Handler {
				srv.Handle("GET /", m(h))
				return srv
			},
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

// A failure is logged once, by the server if it answers, and else by the middleware.
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
