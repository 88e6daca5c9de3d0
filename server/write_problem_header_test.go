package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

// What the response has of the fields that a middleware, the handler, its problem and WriteProblem set.
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
		"fields removed from the problem": {func(_ http.ResponseWriter, p *server.Problem) {
			p.Header.Del("WWW-Authenticate")
			p.Header.Del("Vary")
		}, http.Header{"Www-Authenticate": {"Own"}, "Vary": {"Origin"}}},
		"field added to the problem": {func(_ http.ResponseWriter, p *server.Problem) {
			p.Header.Set("Link", "</help>")
			p.Header.Add("Vary", "Accept")
		}, http.Header{"Link": {"</help>"}, "Vary": {"Origin", "Accept-Language", "Accept"}}},
		"field replaced in the problem": {func(_ http.ResponseWriter, p *server.Problem) {
			p.Header.Set("WWW-Authenticate", "Bearer")
		}, http.Header{"Www-Authenticate": {"Bearer"}}},
		"another status": {func(_ http.ResponseWriter, p *server.Problem) { p.Status = 404 }, http.Header{"Retry-After": nil}},
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
			srv.Use(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Vary", "Origin")
					w.Header().Set("Set-Cookie", "a=1")
					next.ServeHTTP(w, r)
				})
			})
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
