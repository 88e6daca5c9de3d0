package proxy

import (
	"cmp"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// upstream is a server behind the proxy, with its connections.
type upstream struct {
	name      string
	config    config.Upstream
	url       *url.URL
	transport *http.Transport
	roundTrip http.RoundTripper // transport, or a wrapper around it
	metrics   upstreamMetrics
	outage    outage
	cuts      throttledLog
}

// matchesConfig reports whether the upstream can be kept for a configuration. With a CA file, it can't, because the
// file may have changed.
func (u *upstream) matchesConfig(c config.Upstream) bool {
	return u != nil && u.config == c && c.CA == ""
}

func newUpstream(p *Proxy, name string, c config.Upstream) (*upstream, error) {
	target, err := c.Target()
	if err != nil {
		return nil, err
	}
	transport, err := newTransport(c, target)
	var roundTrip http.RoundTripper = transport
	if transport.Protocols.UnencryptedHTTP2() || target.Scheme == "https" {
		roundTrip = http2Transport{transport}
	}
	return &upstream{
		name: name, config: c, url: target, transport: transport, roundTrip: roundTrip,
		metrics: p.metrics.upstreamMetricsFor(name),
		outage:  outage{log: p.log.With(slog.String("upstream", name)), lost: "the upstream doesn't answer", back: "the upstream answers again"},
	}, err
}

const (
	dialTimeout = 5 * time.Second // timeout for a connection, and for its TLS handshake
	idleConns   = 512             // maximum number of idle connections to an upstream

	// maxResponseHeader is the maximum size of the header of an upstream's response, in bytes. The default of
	// net/http is 10 MB, which is too much if there are many requests.
	maxResponseHeader = 2 << 20
)

func newTransport(c config.Upstream, target *url.URL) (*http.Transport, error) {
	conf, err := c.TLS()
	t := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  c.ResponseTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConns:           idleConns,
		MaxIdleConnsPerHost:    idleConns,
		MaxConnsPerHost:        c.MaxConnections,
		DisableCompression:     true, // only clients decide whether responses are compressed
		WriteBufferSize:        16 << 10,
		ReadBufferSize:         16 << 10,
		Protocols:              new(http.Protocols),
	}
	if target.Scheme == "https" {
		t.TLSClientConfig = conf
	}
	t.Protocols.SetHTTP1(c.HTTP2 != "cleartext")
	t.Protocols.SetHTTP2(c.HTTP2 != "cleartext")
	t.Protocols.SetUnencryptedHTTP2(c.HTTP2 == "cleartext")
	return t, err
}

// rewriteURL directs a request to the upstream. It ignores the Host and the URL in the request's first line.
func (u *upstream) rewriteURL(in, out *http.Request) {
	out.URL.Scheme, out.URL.Host = u.url.Scheme, u.url.Host
	if u.url.Path != "" && u.url.Path != "/" {
		joined := u.url.JoinPath()
		out.URL.Path = strings.TrimSuffix(joined.Path, "/") + cmp.Or(in.URL.Path, "/")
		out.URL.RawPath = strings.TrimSuffix(joined.EscapedPath(), "/") + cmp.Or(in.URL.EscapedPath(), "/")
	}
	out.URL.RawQuery, out.URL.ForceQuery = in.URL.RawQuery, in.URL.ForceQuery
	out.Host = in.Host
	if u.config.Host == "upstream" {
		out.Host = ""
	}
}

// flushInterval is the maximum time that a part of a response is buffered.
const flushInterval = 20 * time.Millisecond

// buffers holds buffers for copying bodies.
var buffers = &bufferPool{sync.Pool{New: func() any { return new([32 << 10]byte) }}}

// bufferPool implements [httputil.BufferPool].
type bufferPool struct{ pool sync.Pool }

// Get returns a buffer.
func (b *bufferPool) Get() []byte { return b.pool.Get().(*[32 << 10]byte)[:] }

// Put keeps a buffer for reuse.
func (b *bufferPool) Put(p []byte) { b.pool.Put((*[32 << 10]byte)(p)) }

// upstreamWriter is the ResponseWriter to which [httputil.ReverseProxy] writes an upstream's response.
type upstreamWriter struct {
	http.ResponseWriter
	informs bool // the client understands informational responses (1xx)
}

// WriteHeader drops informational responses that the client doesn't understand. It also drops the status 101, which
// HTTP/2 does not have. Over HTTP/1, ReverseProxy sends 101 without calling WriteHeader.
func (w *upstreamWriter) WriteHeader(status int) {
	if status == http.StatusSwitchingProtocols || status < 200 && !w.informs {
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is called by [http.ResponseController].
func (w *upstreamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
