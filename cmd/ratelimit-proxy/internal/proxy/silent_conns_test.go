package proxy

import (
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// Connections without a request don't delay the stop.
func TestSilentConnectionsDoNotDelayStop(t *testing.T) {
	t.Parallel()
	certs := newCertificates(t)
	up := behind(t, nil)
	proxied := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for name, c := range map[string]struct {
		listener config.Listener
		sends    string
	}{
		"plain":                     {config.Listener{}, ""},
		"half a header":             {config.Listener{}, "GET / HT"},
		"TLS":                       {config.Listener{Cert: certs.cert, Key: certs.key}, ""},
		"half a handshake":          {config.Listener{Cert: certs.cert, Key: certs.key}, "\x16\x03\x01"},
		"PROXY protocol":            {config.Listener{ProxyProtocol: proxied}, ""},
		"half of a PROXY header":    {config.Listener{ProxyProtocol: proxied}, "PROX"},
		"PROXY protocol, then TLS":  {config.Listener{ProxyProtocol: proxied, Cert: certs.cert, Key: certs.key}, ""},
		"PROXY protocol, then none": {config.Listener{ProxyProtocol: proxied}, "PROXY UNKNOWN\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := limited(t, up.URL, "10/60s")
			c.listener.Address = "127.0.0.1:0"
			conf.Listen = []config.Listener{c.listener}
			p := run(t, conf)
			conn, err := net.Dial("tcp", p.addr)
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, c.sends)
			require.NoError(t, err)
			began := time.Now()
			require.NoError(t, p.server.Shutdown(context.Background()))
			require.Less(t, time.Since(began), 4*time.Second, "net/http waits for five seconds")
			require.Empty(t, p.log.above(t), "a stop is nothing to warn of")
		})
	}
}
