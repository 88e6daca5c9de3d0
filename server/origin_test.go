package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
)

func TestCrossOriginRequests(t *testing.T) {
	const forbidden = `{"status":403,"title":"Forbidden","detail":"This is a cross-origin browser request, which this server does not allow: ` +
		`its Origin or Sec-Fetch-Site header names another site. To allow an origin, the server adds it to server.Options.CrossOrigin."}`
	trusting := http.NewCrossOriginProtection()
	require.NoError(t, trusting.AddTrustedOrigin("https://friend.example"))
	trusting.AddInsecureBypassPattern("POST /hook")
	for name, o := range map[string]server.Options{
		"default":  {},
		"trusting": {CrossOrigin: trusting},
		"insecure": {InsecureAllowCrossOrigin: true},
		"both":     {CrossOrigin: trusting, InsecureAllowCrossOrigin: true},
	} {
		all := o.InsecureAllowCrossOrigin
		some := o.CrossOrigin != nil || all
		for what, tt := range map[string]struct {
			method, path, site, origin string
			allowed                    bool
		}{
			"cross-site":               {"POST", "/", "cross-site", "https://evil.example", all},
			"cross-site, no origin":    {"POST", "/", "cross-site", "", all},
			"same-site":                {"POST", "/", "same-site", "https://www.example.com", all},
			"PUT":                      {"PUT", "/", "cross-site", "https://evil.example", all},
			"DELETE":                   {"DELETE", "/", "cross-site", "https://evil.example", all},
			"PATCH":                    {"PATCH", "/", "cross-site", "https://evil.example", all},
			"old browser":              {"POST", "/", "", "https://evil.example", all},
			"old browser, null":        {"POST", "/", "", "null", all},
			"same-origin":              {"POST", "/", "same-origin", "https://example.com", true},
			"typed by the user":        {"POST", "/", "none", "", true},
			"old browser, same origin": {"POST", "/", "", "https://example.com", true},
			"curl":                     {"POST", "/", "", "", true},
			"GET":                      {"GET", "/", "cross-site", "https://evil.example", true},
			"HEAD":                     {"HEAD", "/", "cross-site", "https://evil.example", true},
			"OPTIONS":                  {"OPTIONS", "/", "cross-site", "https://evil.example", true},
			"friend":                   {"POST", "/", "cross-site", "https://friend.example", some},
			"friend, old browser":      {"POST", "/", "", "https://friend.example", some},
			"friend without TLS":       {"POST", "/", "cross-site", "http://friend.example", all},
			"hook":                     {"POST", "/hook", "cross-site", "https://evil.example", some},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				srv, l := newServer(t, o)
				provideMark(srv)
				called := false
				srv.HandleFunc("/", marked(func(w http.ResponseWriter, _ *server.Request) error {
					called = true
					_, err := io.WriteString(w, "ok")
					return err
				}))
				plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					called = true
					_, _ = io.WriteString(w, "ok")
				})
				for _, h := range []http.Handler{srv, srv.Wrap(plain), srv.Wrap(srv)} {
					called = false
					r := httptest.NewRequest(tt.method, "http://example.com"+tt.path, nil)
					if tt.site != "" {
						r.Header.Set("Sec-Fetch-Site", tt.site)
					}
					if tt.origin != "" {
						r.Header.Set("Origin", tt.origin)
					}
					rec := httptest.NewRecorder()
					h.ServeHTTP(rec, r)
					res := answer{rec.Result(), rec.Body.String()}
					require.Equal(t, tt.allowed, called)
					if tt.allowed {
						require.Equal(t, 200, res.StatusCode)
						require.Equal(t, "ok", res.body)
						continue
					}
					requireProblem(t, 403, forbidden, res)
					require.Empty(t, res.Header["X-Mark"], "no property was needed")
				}
				require.Empty(t, l.at(""), "a client's fault is not logged")
			})
		}
	}
}
