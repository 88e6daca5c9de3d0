package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// certificates holds the files of a self-signed certificate for this machine and of its key.
type certificates struct {
	cert, key string
	pool      *x509.CertPool
}

func newCertificates(tb testing.TB) *certificates {
	tb.Helper()
	dir := tb.TempDir()
	c := &certificates{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	c.renew(tb, 1)
	return c
}

// renew replaces the files with a new certificate. Like ACME clients, it renames new files to the old names.
func (c *certificates) renew(tb testing.TB, serial int64) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(tb, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "proxy"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(tb, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(tb, err)
	for file, block := range map[string]*pem.Block{c.key: {Type: "PRIVATE KEY", Bytes: private}, c.cert: {Type: "CERTIFICATE", Bytes: der}} {
		require.NoError(tb, os.WriteFile(file+".new", pem.EncodeToMemory(block), 0o600))
		require.NoError(tb, os.Rename(file+".new", file))
	}
	c.pool = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	require.NoError(tb, err)
	c.pool.AddCert(parsed)
}

// client returns an HTTP client that trusts the certificate.
func (c *certificates) client(tb testing.TB, http2 bool) *http.Client {
	client := newClient(tb)
	t := client.Transport.(*http.Transport)
	t.TLSClientConfig = &tls.Config{RootCAs: c.pool}
	t.ForceAttemptHTTP2 = http2
	return client
}

func TestCertificateIsReloaded(t *testing.T) {
	t.Parallel()
	certs := newCertificates(t)
	up := behind(t, nil)
	c := limited(t, up.URL, "1000/60s")
	c.Listen = []config.Listener{{Address: "127.0.0.1:0", Cert: certs.cert, Key: certs.key}}
	p := run(t, c)
	p.client = certs.client(t, true)
	a := p.get(t, "/")
	require.EqualValues(t, 1, a.TLS.PeerCertificates[0].SerialNumber.Int64())
	require.Equal(t, 2, a.ProtoMajor)
	require.Equal(t, "https", up.last.Load().Header.Get("X-Forwarded-Proto"))

	certs.renew(t, 2)
	require.Eventually(t, func() bool {
		conn, err := tls.Dial("tcp", p.addr, &tls.Config{RootCAs: certs.pool})
		if err != nil {
			return false // the server still uses the old certificate
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64() == 2
	}, 20*time.Second, 50*time.Millisecond)
	require.Equal(t, 200, p.get(t, "/").StatusCode, "connections that are open go on")
}

func TestOldTLSIsRefused(t *testing.T) {
	certs := newCertificates(t)
	c := limited(t, behind(t, nil).URL, "10/60s")
	c.Listen = []config.Listener{{Address: "127.0.0.1:0", Cert: certs.cert, Key: certs.key}}
	conf := &tls.Config{RootCAs: certs.pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	_, err := tls.Dial("tcp", run(t, c).addr, conf)
	require.ErrorContains(t, err, "protocol version not supported")
}

func TestTLSToTheUpstream(t *testing.T) {
	certs := newCertificates(t)
	conf := limited(t, behind(t, nil).URL, "1000/60s")
	conf.Listen = []config.Listener{{Address: "127.0.0.1:0", Cert: certs.cert, Key: certs.key}}
	up := run(t, conf)

	p := run(t, parse(t, "upstreams: {main: {url: %q, ca: %q}}\n", up.url, certs.cert))
	require.Equal(t, 200, p.get(t, "/").StatusCode)
	p = run(t, parse(t, "upstreams: {main: {url: %q}}\n", up.url))
	require.Equal(t, 502, p.get(t, "/").StatusCode, "an unknown authority")
	p = run(t, parse(t, "upstreams: {main: {url: %q, insecure_skip_verify: true}}\n", up.url))
	require.Equal(t, 200, p.get(t, "/").StatusCode)
}

func TestHTTP2ToTheUpstream(t *testing.T) {
	for mode, want := range map[string]int{"": 1, ", http2: cleartext": 2} {
		var protocols http.Protocols
		protocols.SetHTTP1(true)
		protocols.SetUnencryptedHTTP2(true)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		got := make(chan int, 1)
		srv := &http.Server{Protocols: &protocols, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.ProtoMajor })}
		go func() { _ = srv.Serve(l) }()
		t.Cleanup(func() { _ = srv.Close() })
		p := run(t, parse(t, "upstreams: {main: {url: 'http://%s'%s}}\n", l.Addr(), mode))
		require.Equal(t, 200, p.get(t, "/").StatusCode)
		require.Equal(t, want, <-got, mode)
	}
}
