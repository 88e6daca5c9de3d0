package proxy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"
	"time"
	"unicode"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/server"
)

// exchange is one request on its way to an upstream.
type exchange struct {
	p    *Proxy
	g    *generation
	w    http.ResponseWriter
	req  *server.Request
	up   *upstream
	body *requestBody
	sent time.Time
	err  error // why the upstream has not responded

	status    status // for the response's headers
	hasStatus bool
	writer    upstreamWriter
	response  responseBody
}

// serve answers the request.
func (x *exchange) serve() error {
	r := x.req.Request
	if err := x.refusal(r); err != nil {
		return err
	}
	path := cleanPath(r)
	if x.g.readsDifferently(r, path) {
		return server.Errorf(http.StatusBadRequest, "The path is ambiguous.")
	}
	rules := x.g.rulesFor(r, path)
	if err := checkKeys(r, rules); err != nil {
		return err
	}
	switch asks, err := x.g.asksForStatus(r); {
	case err != nil:
		return err
	case asks:
		return x.answerStatus(r, rules)
	}
	if x.up = x.g.upstreamFor(r, path); x.up == nil {
		return server.Errorf(http.StatusNotFound, "No route matches the request.")
	}
	if len(r.Header["Upgrade"]) > 0 && x.up.config.HTTP2 == "cleartext" {
		return server.Errorf(http.StatusBadRequest, "The server behind this proxy supports no websockets.")
	}
	if err := x.chargeRules(r, rules); err != nil {
		return err
	}
	return x.forward(r)
}

// refusal returns an error for a request that is refused whatever the rules are.
func (x *exchange) refusal(r *http.Request) error {
	upgrade := r.Header["Upgrade"]
	switch {
	case r.Method == http.MethodConnect:
		return &server.Problem{Status: http.StatusNotImplemented, Detail: "CONNECT is not supported."}
	case !config.IsMethod(r.Method):
		return server.Errorf(http.StatusBadRequest, "The request's method is not valid.")
	case r.URL.Opaque != "", r.URL.Path != "" && r.URL.Path[0] != '/': // "a:http://host/path", which an upstream may read otherwise
		return server.Errorf(http.StatusBadRequest, "The request's target is not a path.")
	case strings.ContainsFunc(r.URL.Path, unicode.IsControl):
		return server.Errorf(http.StatusBadRequest, "The path contains a control character.")
	case leavesRoot(r):
		return server.Errorf(http.StatusBadRequest, "The path leads above its root.")
	case strings.Contains(r.URL.RawQuery, " "): // which HTTP/2 can carry, and HTTP/1 can't
		return server.Errorf(http.StatusBadRequest, "The query contains a space.")
	case hasPaddedValue(r.Header):
		return server.Errorf(http.StatusBadRequest, "A header's value begins or ends with a space.")
	case !hasHost(r), r.URL.User != nil:
		return server.Errorf(http.StatusBadRequest, "The request's Host is not valid.")
	case x.p.isLoop(r):
		x.p.loops.write(x.p.log, slog.LevelError, "loop: a request of this proxy has come back to it", slog.String("host", r.Host), slog.String("path", r.URL.Path))
		return &server.Problem{Status: http.StatusLoopDetected, Detail: "The request has been through this proxy before."}
	case len(upgrade) > 1 || len(upgrade) == 1 && !strings.EqualFold(upgrade[0], "websocket"):
		return server.Errorf(http.StatusBadRequest, "Only an upgrade to websocket is supported.")
	case len(upgrade) > 0 && r.Body != nil && r.Body != http.NoBody: // where would the websocket begin?
		return server.Errorf(http.StatusBadRequest, "A request to upgrade must not have a body.")
	}
	return nil
}

// rulesFor returns the rules that match a request, up to a last one.
func (g *generation) rulesFor(r *http.Request, path string) (out []*rule) {
	for _, rule := range g.rules {
		if matches(&rule.Match, r, path) {
			out = append(out, rule)
			if rule.Last {
				break
			}
		}
	}
	return out
}

// upstreamFor returns the upstream of the first route that matches, nil if none does.
func (g *generation) upstreamFor(r *http.Request, path string) *upstream {
	for i := range g.config.Routes {
		if route := &g.config.Routes[i]; matches(&route.Match, r, path) {
			return g.upstreams[route.Upstream]
		}
	}
	return nil
}

// forward sends the request to the upstream and streams the response.
func (x *exchange) forward(r *http.Request) error {
	if x.body = bodyOf(x.w); x.body != nil {
		x.body.sent = true
		if len(r.Trailer) > 0 {
			x.g.removeFromTrailer(r.Trailer)
			x.body.atEnd = func() { x.g.removeFromTrailer(r.Trailer) }
		}
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer x.body.watchUpstream(x.up.transport.ResponseHeaderTimeout, func() { cancel(errUnread) })()
		r = r.WithContext(ctx)
	}
	if x.up.transport.DisableKeepAlives { // the connection begins with the client's address
		r = r.WithContext(context.WithValue(r.Context(), connAddrsKey{}, x.connAddrs(r)))
	}
	proxy := httputil.ReverseProxy{
		Rewrite:        x.rewrite,
		Transport:      x.up.roundTrip,
		ModifyResponse: x.observeResponse,
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, err error) { x.err = err },
		BufferPool:     buffers,
		FlushInterval:  flushInterval,
		ErrorLog:       x.p.debugLog,
	}
	x.passOn(&proxy, r)
	if x.err != nil {
		return x.upstreamError()
	}
	return nil
}

// passOn has proxy answer a request. If the response is cut off, it sends the part that has arrived:
// net/http drops what it has not sent.
func (x *exchange) passOn(proxy *httputil.ReverseProxy, r *http.Request) {
	defer func() {
		v := recover()
		if v == http.ErrAbortHandler { // after the header
			_ = http.NewResponseController(x.w).Flush()
		}
		if v != nil {
			panic(v)
		}
	}()
	x.writer = upstreamWriter{x.w, r.ProtoAtLeast(1, 1)}
	proxy.ServeHTTP(&x.writer, r)
}

// connAddrs returns the addresses for the PROXY protocol. The client's port is 0 if another
// proxy has named the client.
func (x *exchange) connAddrs(r *http.Request) (a connAddrs) {
	remote, _ := netip.ParseAddrPort(r.RemoteAddr)
	client := x.g.clients.address(r.Context(), r)
	a.client = netip.AddrPortFrom(client, 0)
	if client == peerAddr(r) {
		a.client = netip.AddrPortFrom(client, remote.Port())
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		at, _ := netip.ParseAddrPort(local.String())
		a.local = netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
	}
	return a
}

func (x *exchange) rewrite(pr *httputil.ProxyRequest) {
	x.sent = time.Now()
	x.up.rewriteURL(pr.In, pr.Out)
	x.g.clients.setForwarded(pr.In, pr.Out, x.g.config.Headers.Forwarded)
	x.p.addVia(pr.In, pr.Out)
	pr.Out.Trailer = nil
	if pr.Out.Body != nil { // else net/http never ends a request over HTTP/2
		pr.Out.Trailer = pr.In.Trailer // which has no values yet
	}
	delete(pr.Out.Header, tokenHeader)
	if _, ok := pr.Out.Header["User-Agent"]; !ok {
		pr.Out.Header["User-Agent"] = nil // net/http would send its own
	}
}

// observeResponse is called with the upstream's final header. Headers must not be set before:
// net/http/httputil removes them when it passes on an informational response (1xx).
func (x *exchange) observeResponse(res *http.Response) error {
	if res.StatusCode < 100 {
		return fmt.Errorf("the status is %d", res.StatusCode)
	}
	if x.body != nil {
		x.body.answered.Store(true)
	}
	x.up.metrics.responses[min(max(res.StatusCode/100, 1), 5)-1].Inc()
	x.up.outage.callSucceeded()
	x.up.metrics.times.UpdateDuration(x.sent)
	if len(res.Header["Content-Type"]) == 0 {
		x.w.Header()["Content-Type"] = nil // net/http would guess one
	}
	if !hasStatusHeaders(res.Header) {
		x.writeStatus()
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		x.response = responseBody{res.Body, x}
		res.Body = &x.response
	}
	return nil
}

func (x *exchange) writeStatus() {
	if x.hasStatus {
		x.status.writeHeaders(x.w.Header())
	}
}

// responseBody reports when the upstream breaks off in the middle of a response.
type responseBody struct {
	io.ReadCloser
	x *exchange
}

// Read is for net/http/httputil, which then cuts the client's connection off.
func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !isCancelled(err) {
		b.x.p.metrics.countUpstreamFailure(b.x.up.name, "cut")
		b.x.up.cuts.write(b.x.up.outage.log, slog.LevelError, "the upstream broke off a response", slog.String("error", err.Error()))
	}
	return n, err
}
