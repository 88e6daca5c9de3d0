package proxy

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// TestBounds checks the documented defaults of timeouts and sizes, and that configured values replace them.
func TestBounds(t *testing.T) {
	p := run(t, limited(t, "http://127.0.0.1:1", "10/60s"))
	g, s := p.current.Load(), p.server.http
	require.Equal(t, 50*time.Millisecond, g.config.RedisTimeout)
	require.Equal(t, time.Minute, g.config.Timeouts.Stall)
	require.Equal(t, 10*time.Second, s.ReadHeaderTimeout)
	require.Equal(t, 2*time.Minute, s.IdleTimeout)
	require.Equal(t, 64<<10, s.MaxHeaderBytes)
	up := g.upstreams["main"].transport
	require.Equal(t, 30*time.Second, up.ResponseHeaderTimeout)
	require.Equal(t, 5*time.Second, up.TLSHandshakeTimeout)
	require.Equal(t, 512, up.MaxIdleConnsPerHost)
	require.Zero(t, up.MaxConnsPerHost)

	c := parse(t, `
upstreams: {main: {url: http://a, response_timeout: 1s, max_connections: 4}}
timeouts: {header: 5s, stall: 6s, idle: 7s}
max_header_bytes: 8KiB
`)
	p = run(t, c)
	g, s = p.current.Load(), p.server.http
	require.Equal(t, 6*time.Second, g.config.Timeouts.Stall)
	require.Equal(t, 5*time.Second, s.ReadHeaderTimeout)
	require.Equal(t, 7*time.Second, s.IdleTimeout)
	require.Equal(t, 8<<10, s.MaxHeaderBytes)
	up = g.upstreams["main"].transport
	require.Equal(t, time.Second, up.ResponseHeaderTimeout)
	require.Equal(t, 4, up.MaxConnsPerHost)
}

// TestReloadWithoutCertificate checks that a reload fails if a certificate can't be read. The old configuration stays
// in force.
func TestReloadWithoutCertificate(t *testing.T) {
	certs, up := newCertificates(t), behind(t, nil).URL
	conf := func(limit string) config.Config {
		c := limited(t, up, limit)
		c.Listen = []config.Listener{{Address: "127.0.0.1:0", Cert: certs.cert, Key: certs.key}}
		return c
	}
	p := run(t, conf("10/60s"))
	p.client = certs.client(t, true)
	require.NoError(t, os.Remove(certs.key))
	require.ErrorContains(t, Check(conf("20/60s")), "listen[0].cert: "+certs.cert)
	require.ErrorContains(t, p.reload(conf("20/60s")), "listen[0].cert: "+certs.cert)
	require.Equal(t, "10", p.get(t, "/").Header.Get("X-RateLimit-MaxRequests"))
	certs.renew(t, 2)
	require.NoError(t, p.reload(conf("20/60s")))
	require.Equal(t, "20", p.get(t, "/").Header.Get("X-RateLimit-MaxRequests"))
	c := conf("20/60s")
	c.Listen[0].Address = "nowhere"
	require.ErrorContains(t, p.reload(c), "listen[0].address")
}

func TestReloadReadsCAAgain(t *testing.T) {
	certs, others := newCertificates(t), newCertificates(t)
	c := limited(t, behind(t, nil).URL, "1000/60s")
	c.Listen = []config.Listener{{Address: "127.0.0.1:0", Cert: certs.cert, Key: certs.key}}
	up := run(t, c)
	ca := t.TempDir() + "/ca.pem"
	trust := func(file string) {
		pem, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(ca, pem, 0o600))
	}
	trust(others.cert)
	c = parse(t, "upstreams: {main: {url: %q, ca: %q}}\n", up.url, ca)
	p := run(t, c)
	require.Equal(t, 502, p.get(t, "/").StatusCode)
	trust(certs.cert)
	require.NoError(t, p.reload(c))
	require.Equal(t, 200, p.get(t, "/").StatusCode)
}

// TestStoreSettings checks which changes of the configuration need a new store.
func TestStoreSettings(t *testing.T) {
	const redis = "redis://127.0.0.1:1"
	for name, c := range map[string]struct {
		a, b config.Config
		same bool
	}{
		"replicas":         {config.Config{Redis: redis, Replicas: 2}, config.Config{Redis: redis, Replicas: 3}, false},
		"default replicas": {config.Config{Redis: redis}, config.Config{Redis: redis, Replicas: 1}, true},
		"timeout":          {config.Config{Redis: redis}, config.Config{Redis: redis, RedisTimeout: time.Second}, false},
		"url":              {config.Config{Redis: redis}, config.Config{Redis: redis + "/1"}, false},
		"bytes with Redis": {config.Config{Redis: redis}, config.Config{Redis: redis, Memory: config.Memory{MaxBytes: 2 << 20}}, true},
		"bytes":            {config.Config{}, config.Config{Memory: config.Memory{MaxBytes: 2 << 20}}, false},
		"from memory":      {config.Config{}, config.Config{Redis: redis}, false},
		"to memory":        {config.Config{Redis: redis}, config.Config{}, false},
		"trusted proxies":  {config.Config{}, config.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, true},
	} {
		p := &Proxy{log: slog.New(slog.DiscardHandler)}
		open := func(c config.Config, before *store) *store {
			c.Upstreams = map[string]config.Upstream{"main": {URL: "http://a"}}
			c, err := c.Resolve()
			require.NoError(t, err)
			s, err := p.openStore(&c, before)
			require.NoError(t, err)
			return s
		}
		first := open(c.a, nil)
		next := open(c.b, first)
		require.Equal(t, c.same, next == first, name)
		for _, s := range []*store{first, next} {
			require.Positive(t, s.users.Load())
			require.NoError(t, s.release())
		}
		require.Zero(t, first.users.Load(), name)
		require.Zero(t, next.users.Load(), name)
	}
}

func TestStopIsNoUpstreamFailure(t *testing.T) {
	up := behind(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	p := run(t, limited(t, up.URL, "10/60s"))
	res, err := p.client.Get(p.url)
	require.NoError(t, err)
	defer res.Body.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, p.server.Shutdown(ctx))
	_, err = io.ReadAll(res.Body)
	require.Error(t, err)
	require.Eventually(t, func() bool { return p.Proxy.metrics.inFlight.Load() == 0 }, 20*time.Second, time.Millisecond)
	require.Empty(t, p.log.lines("broke off"))
}
