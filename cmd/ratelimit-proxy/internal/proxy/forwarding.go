package proxy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
	"unicode"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/server"
)

// forwarding is the state of one request while the proxy checks and forwards it.
type forwarding struct {
	p    *Proxy
	g    *generation
	w    http.ResponseWriter
	req  *server.Request
	up   *upstream
	body *requestBody // nil if the request has no body
	sent time.Time
	err  error // the error if the upstream has not responded

	status    status // for the X-RateLimit headers of the response
	hasStatus bool
	writer    upstreamWriter
	response  responseBody
}

// serve answers the request.
func (f *forwarding) serve() error {
	r := f.req.Request
	if err := f.refusal(r); err != nil {
		return err
	}
	path := cleanPath(r)
	if f.g.readsDifferently(r, path) {
		return server.Errorf(http.StatusBadRequest, "The path is ambiguous.")
	}
	rules := f.g.rulesFor(r, path)
	if err := checkKeys(r, rules); err != nil {
		return err
	}
	switch asks, err := asksForStatus(r); {
	case err != nil:
		return err
	case asks:
		return f.answerStatus(r, rules)
	}
	if f.up = f.g.upstreamFor(r, path); f.up == nil {
		return server.Errorf(http.StatusNotFound, "No route matches the request.")
	}
	if len(r.Header["Upgrade"]) > 0 && f.up.config.HTTP2 == "cleartext" {
		return server.Errorf(http.StatusBadRequest, "The server behind this proxy supports no websockets.")
	}
	if err := f.chargeRules(r, rules); err != nil {
		return err
	}
	return f.forward(r)
}

// refusal returns an error if the proxy refuses the request, whatever its rules are.
func (f *forwarding) refusal(r *http.Request) error {
	upgrade := r.Header["Upgrade"]
	switch {
	case r.Method == http.MethodConnect:
		return &server.Problem{Status: http.StatusNotImplemented, Detail: "CONNECT is not supported."}
	case !config.IsMethod(r.Method):
		return server.Errorf(http.StatusBadRequest, "The request's method is not valid.")
	case r.URL.Opaque != "", r.URL.Path != "" && r.URL.Path[0] != '/': // for example "a:http://host/path", which upstreams may read differently
		return server.Errorf(http.StatusBadRequest, "The request's target is not a path.")
	case strings.ContainsFunc(r.URL.Path, unicode.IsControl):
		return server.Errorf(http.StatusBadRequest, "The path contains a control character.")
	case hasDotSegment(r):
		return server.Errorf(http.StatusBadRequest, "The path contains a segment . or ..")
	case strings.Contains(r.URL.RawQuery, " "): // HTTP/1 can't carry a space here
		return server.Errorf(http.StatusBadRequest, "The query contains a space.")
	case hasPaddedValue(r.Header):
		return server.Errorf(http.StatusBadRequest, "A header's value begins or ends with a space.")
	case !hasHost(r), r.URL.User != nil:
		return server.Errorf(http.StatusBadRequest, "The request's Host is not valid.")
	case f.p.isLoop(r):
		f.p.loops.write(f.p.log, slog.LevelError, "loop: a request of this proxy has come back to it", slog.String("host", r.Host), slog.String("path", r.URL.Path))
		return &server.Problem{Status: http.StatusLoopDetected, Detail: "The request has been through this proxy before."}
	case len(upgrade) > 1 || len(upgrade) == 1 && !strings.EqualFold(upgrade[0], "websocket"):
		return server.Errorf(http.StatusBadRequest, "Only an upgrade to websocket is supported.")
	case len(upgrade) > 0 && r.Body != nil && r.Body != http.NoBody: // it would be unclear where the websocket begins
		return server.Errorf(http.StatusBadRequest, "A request to upgrade must not have a body.")
	}
	return nil
}

// rulesFor returns the rules that match a request, up to the first one with Last.
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

// upstreamFor returns the upstream of the first route that matches, or nil if no route matches.
func (g *generation) upstreamFor(r *http.Request, path string) *upstream {
	for i := range g.config.Routes {
		if route := &g.config.Routes[i]; matches(&route.Match, r, path) {
			return g.upstreams[route.Upstream]
		}
	}
	return nil
}

// forward sends the request to the upstream and streams the response.
func (f *forwarding) forward(r *http.Request) error {
	if f.body = bodyOf(f.w); f.body != nil {
		f.body.sent = true
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer f.body.watchUpstream(f.up.transport.ResponseHeaderTimeout, func() { cancel(errUnread) })()
		r = r.WithContext(ctx)
	}
	proxy := httputil.ReverseProxy{
		Rewrite:        f.rewrite,
		Transport:      f.up.roundTrip,
		ModifyResponse: f.observeResponse,
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, err error) { f.err = err },
		BufferPool:     buffers,
		FlushInterval:  flushInterval,
		ErrorLog:       f.p.debugLog,
	}
	f.passOn(&proxy, r)
	if f.err != nil {
		return f.upstreamError()
	}
	return nil
}

// passOn lets proxy answer a request. If the upstream breaks off its response, passOn flushes the part that has
// arrived, which net/http would drop.
func (f *forwarding) passOn(proxy *httputil.ReverseProxy, r *http.Request) {
	defer func() {
		v := recover()
		if v == http.ErrAbortHandler { // the response broke off after the header
			_ = http.NewResponseController(f.w).Flush()
		}
		if v != nil {
			panic(v)
		}
	}()
	f.writer = upstreamWriter{f.w, r.ProtoAtLeast(1, 1)}
	proxy.ServeHTTP(&f.writer, r)
}

func (f *forwarding) rewrite(pr *httputil.ProxyRequest) {
	f.sent = time.Now()
	f.up.rewriteURL(pr.In, pr.Out)
	f.g.clients.setForwarded(pr.In, pr.Out)
	f.p.addVia(pr.In, pr.Out)
	// An upstream that streams may not end the response to a HEAD request. The next request on the connection would wait.
	pr.Out.Close = pr.In.Method == http.MethodHead && f.up.config.HTTP2 != "cleartext"
	pr.Out.Trailer = nil // some servers would add these fields to the header, which the proxy has already checked
	delete(pr.Out.Header, tokenHeader)
	if _, ok := pr.Out.Header["User-Agent"]; !ok {
		pr.Out.Header["User-Agent"] = nil // otherwise, net/http would send its own
	}
}

// observeResponse is called with the upstream's final header. Headers of the response must not be set earlier,
// because net/http/httputil removes them when it forwards an informational response (1xx).
func (f *forwarding) observeResponse(res *http.Response) error {
	if res.StatusCode < 100 {
		return fmt.Errorf("the status is %d", res.StatusCode)
	}
	if f.body != nil {
		f.body.answered.Store(true)
	}
	f.up.metrics.responses[min(max(res.StatusCode/100, 1), 5)-1].Inc()
	f.up.outage.callSucceeded()
	f.up.metrics.times.UpdateDuration(f.sent)
	if len(res.Header["Content-Type"]) == 0 {
		f.w.Header()["Content-Type"] = nil // otherwise, net/http would guess a type
	}
	if !hasStatusHeaders(res.Header) {
		f.writeStatus()
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		f.response = responseBody{res.Body, f}
		res.Body = &f.response
	}
	return nil
}

func (f *forwarding) writeStatus() {
	if f.hasStatus {
		f.status.writeHeaders(f.w.Header())
	}
}

// responseBody logs and counts a response that the upstream breaks off.
type responseBody struct {
	io.ReadCloser
	f *forwarding
}

// Read is called by net/http/httputil, which cuts the client's connection after an error.
func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !isCancelled(err) {
		b.f.p.metrics.countUpstreamFailure(b.f.up.name, "cut")
		b.f.up.cuts.write(b.f.up.outage.log, slog.LevelError, "the upstream broke off a response", slog.String("error", err.Error()))
	}
	return n, err
}
