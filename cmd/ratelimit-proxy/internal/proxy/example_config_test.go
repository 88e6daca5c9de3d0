package proxy

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// TestDocumentedExample checks that docs/proxy.yaml is valid, and that a proxy with this configuration gives the
// expected responses.
func TestDocumentedExample(t *testing.T) {
	data, err := os.ReadFile("../../../../docs/proxy.yaml")
	require.NoError(t, err)
	certs := newCertificates(t)
	text := strings.NewReplacer("/etc/ratelimit-proxy/cert.pem", certs.cert, "/etc/ratelimit-proxy/key.pem", certs.key,
		"/etc/ratelimit-proxy/ca.pem", certs.cert).Replace(string(data))
	conf, err := config.Parse("proxy.yaml", []byte(text))
	require.NoError(t, err)
	require.NoError(t, Check(conf))

	up := behind(t, func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("password") == "wrong" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	for name, u := range conf.Upstreams {
		conf.Upstreams[name] = config.Upstream{URL: up.URL, Host: u.Host}
	}
	conf.Redis = ""
	p, err := New(conf, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer p.Close()
	r := &running{Proxy: p}
	for _, want := range exampleRequests {
		require.Equal(t, want.status, r.serve(want.method, want.path, want.headers...), "%s %s", want.method, want.path)
	}
}

// exampleRequests lists requests to a proxy that is configured with docs/proxy.yaml. They come from the trusted proxy
// 10.0.0.1.
var exampleRequests = []struct {
	method, path string
	headers      []string
	status       int
}{
	{"GET", "/x", []string{"Host", "api.example.com"}, 200},
	{"GET", "/x", []string{"Host", "eu.api.example.com"}, 200},
	{"GET", "/x", []string{"Host", "example.com"}, 404},
	{"GET", "/files/a", nil, 200},
	{"PUT", "/files/a", nil, 404},
	{"POST", "/login", []string{"Host", "api.example.com", "X-Forwarded-For", "192.0.2.9"}, 200},
	{"POST", "/login?password=wrong", []string{"Host", "api.example.com", "X-Forwarded-For", "192.0.2.9"}, 401},
	{"POST", "/login?password=wrong", []string{"Host", "api.example.com", "X-Forwarded-For", "192.0.2.9"}, 401},
	{"POST", "/login?password=wrong", []string{"Host", "api.example.com", "X-Forwarded-For", "192.0.2.9"}, 401},
	{"POST", "/login", []string{"Host", "api.example.com", "X-Forwarded-For", "192.0.2.9"}, 429},
	{"POST", "/login", []string{"Host", "api.example.com", "X-Forwarded-For", "192.0.2.8"}, 200},
	{"GET", "/x", []string{"Host", "api.example.com", "X-Api-Key", "k", "X-Cost", "100"}, 200},
	{"GET", "/x", []string{"Host", "api.example.com", "X-Api-Key", "k"}, 429},
	{"GET", "/x", []string{"Host", "api.example.com", "X-Api-Key", "k", "X-Plan", "gold"}, 200},
	{"GET", "/x", []string{"Host", "api.example.com", "X-Api-Key", "key-of-our-own", "X-Cost", "101"}, 200},
	{"GET", "/x", []string{"Host", "api.example.com", "X-Api-Key", "key-that-leaked"}, 403},
	{"GET", "/x", []string{"Host", "api.example.com", "X-Forwarded-For", "198.51.100.7"}, 403},
	{"GET", "/status/k?rule=api", nil, 403},
	{"GET", "/status/k?rule=api", []string{"Authorization", "Bearer change-me"}, 200},
	{"GET", "/status/k?rule=api", []string{"X-Forwarded-For", "203.0.113.7"}, 200},
	{"GET", "/status/k?rule=api", []string{"X-Forwarded-For", "127.0.0.1"}, 403},
}

// serve calls the proxy's handler with a request from 10.0.0.1 and returns the status.
func (r *running) serve(method, path string, headers ...string) int {
	req := httptest.NewRequest(method, path, nil)
	req.RemoteAddr = "10.0.0.1:1234"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		} else {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	rec := httptest.NewRecorder()
	r.ServeHTTP(rec, req)
	return rec.Code
}
