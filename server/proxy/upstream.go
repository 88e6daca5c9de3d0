package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/pires/go-proxyproto"
)

// upstream is an [Upstream] that was checked, with its connections.
type upstream struct {
	name      string
	url       *url.URL
	ownHost   bool // the URL's host goes out, not the client's
	transport *http.Transport
	from      Upstream
	answers   [5]*metrics.Counter // by the status's first digit less 1
	log       *log.Logger         // of net/http/httputil
	outage    outage
	times     *histogram // to the header of a response
}

// same tells whether the upstream is what a configuration says. Files may have changed.
func (up *upstream) same(u Upstream) bool { return up.from == u && u.CA == "" }

func newUpstream(name string, u Upstream, p *Proxy, f *faults) *upstream {
	field := "upstreams." + name
	target, err := url.Parse(u.URL)
	switch {
	case err != nil:
		f.addf(field+".url", "is no address of a server, want one such as http://127.0.0.1:9000: %w", withoutURL(err))
		return nil
	case target.Scheme != "http" && target.Scheme != "https" || target.Host == "":
		f.addf(field+".url", "%q is no address of a server, want one such as http://127.0.0.1:9000", target.Redacted())
		return nil
	case target.User != nil || target.RawQuery != "" || target.Fragment != "":
		f.addf(field+".url", "%q has more than scheme, host and path", target.Redacted())
	case !validPort(target.Port()) && target.Port() != "":
		f.addf(field+".url", "%q has no port from 1 to 65535", target.Redacted())
	case u.Host != "" && u.Host != "client" && u.Host != "upstream":
		f.addf(field+".host", "%q, want client or upstream", u.Host)
	case u.ProxyProtocol < 0 || u.ProxyProtocol > 2:
		f.addf(field+".proxy_protocol", "is %d, want version 1 or 2", u.ProxyProtocol)
	case u.DialTimeout < 0 || u.ResponseTimeout < 0 || u.IdleConnections < 0 || u.MaxConnections < 0:
		f.addf(field, "has a negative number")
	}
	up := &upstream{name: name, url: target, ownHost: u.Host == "upstream", from: u, answers: p.metrics.answers(name), times: p.metrics.upstreamTimes(name)}
	up.log = log.New(&breakOffs{p: p, upstream: name}, "", 0)
	up.outage.log = p.log.With(slog.String("upstream", name))
	up.outage.lost, up.outage.back = "an upstream doesn't answer", "an upstream answers again"
	up.outage.affected = "requests that an upstream has not answered"
	up.transport = u.transport(field, target, f)
	return up
}

// breakOffs gets what net/http/httputil logs: that a response's body could not be read to its
// end.
type breakOffs struct {
	p        *Proxy
	upstream string
	seldom   seldom
}

// Write counts and logs it. Of which request it was isn't told.
func (b *breakOffs) Write(text []byte) (int, error) {
	cause, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "httputil: ReverseProxy read error during body copy: ")
	if ok && cause != errStopped.Error() { // which is our own doing
		b.p.metrics.upstreamFailed(b.upstream, "cut")
		b.seldom.log(b.p.log, slog.LevelError, "an upstream has broken off in the middle of a response",
			slog.String("upstream", b.upstream), slog.String("error", cause))
	}
	return len(text), nil
}

// withoutURL leaves out of an error the URL that could not be read: it may have a password.
func withoutURL(err error) error {
	var wrong *url.Error
	if errors.As(err, &wrong) {
		return wrong.Err
	}
	return err
}

// transport makes the pool of connections.
func (u Upstream) transport(field string, target *url.URL, f *faults) *http.Transport {
	dialer := &net.Dialer{Timeout: cmp.Or(u.DialTimeout, 5*time.Second), KeepAlive: 30 * time.Second}
	idle := cmp.Or(u.IdleConnections, 512)
	t := &http.Transport{
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   cmp.Or(u.DialTimeout, 5*time.Second),
		ResponseHeaderTimeout: cmp.Or(u.ResponseTimeout, 30*time.Second),
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConns:          idle,
		MaxIdleConnsPerHost:   idle,
		MaxConnsPerHost:       u.MaxConnections,
		DisableCompression:    true, // what the client asked for goes through
		WriteBufferSize:       16 << 10,
		ReadBufferSize:        16 << 10,
		TLSClientConfig:       u.tls(field, target, f),
	}
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	switch u.HTTP2 {
	case "":
		t.Protocols.SetHTTP2(true)
	case "off":
	case "cleartext":
		t.Protocols = new(http.Protocols)
		t.Protocols.SetUnencryptedHTTP2(true)
		if target.Scheme != "http" {
			f.addf(field+".http2", "is cleartext, but the URL begins with %s://", target.Scheme)
		}
	default:
		f.addf(field+".http2", "%q, want cleartext or off", u.HTTP2)
	}
	if u.ProxyProtocol > 0 {
		t.DisableKeepAlives = true // a connection is one client's
		t.Protocols.SetHTTP2(false)
		t.DialContext = announcing(dialer, byte(u.ProxyProtocol))
	}
	return t
}

func (u Upstream) tls(field string, target *url.URL, f *faults) *tls.Config {
	if target.Scheme != "https" {
		return nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: u.InsecureSkipVerify} //nolint:gosec // asked for by that name
	if u.CA == "" {
		return conf
	}
	pem, err := os.ReadFile(u.CA)
	if err != nil {
		f.add(field+".ca", err)
		return conf
	}
	conf.RootCAs = x509.NewCertPool()
	if !conf.RootCAs.AppendCertsFromPEM(pem) {
		f.addf(field+".ca", "%s has no certificate in PEM", u.CA)
	}
	return conf
}

// clientKey is where a request's context has the ends of its client's connection.
type clientKey struct{}

// ends are the client's address, and the one that it has connected to.
type ends struct{ client, here netip.AddrPort }

// announcing dials connections that begin with a PROXY protocol header.
func announcing(d *net.Dialer, version byte) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		h := &proxyproto.Header{Version: version, Command: proxyproto.LOCAL, TransportProtocol: proxyproto.UNSPEC}
		if e, ok := ctx.Value(clientKey{}).(ends); ok && e.client.IsValid() && e.here.IsValid() {
			h = proxyproto.HeaderProxyFromAddrs(version, net.TCPAddrFromAddrPort(e.client), net.TCPAddrFromAddrPort(e.here))
		}
		_ = conn.SetWriteDeadline(time.Now().Add(d.Timeout))
		_, err = h.WriteTo(conn)
		_ = conn.SetWriteDeadline(time.Time{})
		if err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("PROXY protocol header: %w", err)
		}
		return conn, nil
	}
}

// rewrite points a request at the upstream. Neither the request's Host nor an absolute
// URL in its first line has a say in where it goes.
func (u *upstream) rewrite(in, out *http.Request) {
	out.URL.Scheme, out.URL.Host = u.url.Scheme, u.url.Host
	if u.url.Path != "" && u.url.Path != "/" {
		joined := u.url.JoinPath()
		out.URL.Path = strings.TrimSuffix(joined.Path, "/") + slashed(in.URL.Path)
		out.URL.RawPath = strings.TrimSuffix(joined.EscapedPath(), "/") + slashed(in.URL.EscapedPath())
	}
	out.URL.RawQuery, out.URL.ForceQuery = in.URL.RawQuery, in.URL.ForceQuery
	out.Host = in.Host
	if u.ownHost {
		out.Host = ""
	}
}

func slashed(p string) string {
	if strings.HasPrefix(p, "/") {
		return p
	}
	return "/" + p
}

// flushInterval is for how long a part of a response is kept to be sent with the next.
const flushInterval = 20 * time.Millisecond

// statusOf returns what an upstream's failure is for the client.
func statusOf(err error) int {
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}
