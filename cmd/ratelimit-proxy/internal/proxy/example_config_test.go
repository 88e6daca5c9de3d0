package proxy

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// The documented example is valid and has nearly all fields.
func TestDocumentedExample(t *testing.T) {
	data, err := os.ReadFile("../../../../docs/proxy.yaml")
	require.NoError(t, err)
	certs := newCertificates(t)
	text := strings.NewReplacer("/etc/ratelimit-proxy/cert.pem", certs.cert, "/etc/ratelimit-proxy/key.pem", certs.key,
		"/etc/ratelimit-proxy/ca.pem", certs.cert).Replace(string(data))
	conf, err := config.Parse("proxy.yaml", []byte(text))
	require.NoError(t, err)
	require.NoError(t, Check(conf))

	up := behind(t, nil)
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
