package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/server"
)

// exchange is one request on its way to an upstream.
type exchange struct {
	p    *Proxy
	g    *generation
	w    http.ResponseWriter
	req  *server.Request
	up   *upstream
	body *body
	err  error // why the upstream has not answered
	sent time.Time

	told  told // what the client learns of its limit
	tells bool // there is something to learn

	few [4]*rule // room for those that match
}

// serve answers the request.
func (x *exchange) serve() error {
	r := x.req.Request
	if err := x.refuse(r); err != nil {
		return err
	}
	at := cleaned(r)
	if x.g.contested(r, at) {
		return server.Errorf(http.StatusBadRequest, "The path can be read in several ways.")
	}
	rules := x.g.matching(r, at, x.few[:0])
	if slices.ContainsFunc(rules, func(r *rule) bool { return r.key.has("query") }) && !plainQuery(r.URL.RawQuery) {
		return server.Errorf(http.StatusBadRequest, "The query can be read in several ways.")
	}
	switch asks, err := x.g.status.asksItself(r); {
	case err != nil:
		return err
	case asks:
		return x.answerStatus(r, rules)
	}
	if x.up = x.g.upstreamOf(r, at); x.up == nil {
		return server.Errorf(http.StatusNotFound, "No route leads there.")
	}
	if err := x.limit(r, rules); err != nil {
		return err
	}
	return x.forward(r)
}

// refuse returns why a request goes nowhere, whatever it is for.
func (x *exchange) refuse(r *http.Request) error {
	switch {
	case r.Method == http.MethodConnect:
		return &server.Problem{Status: http.StatusNotImplemented, Detail: "This is no tunnel."}
	case r.URL.Opaque != "", r.URL.Path != "" && r.URL.Path[0] != '/': // "a:http://host/path", which an upstream may read otherwise
		return server.Errorf(http.StatusBadRequest, "The request's target is no path.")
	case strings.Contains(r.URL.Path, "\x00"):
		return server.Errorf(http.StatusBadRequest, "The path has a NUL in it.")
	case !hasHost(r), r.URL.User != nil:
		return server.Errorf(http.StatusBadRequest, "The request's Host is no host.")
	case x.p.sawBefore(r):
		x.p.loops.log(x.p.log, slog.LevelError, "loop: a request of this proxy has come back to it", slog.String("host", r.Host), slog.String("path", r.URL.Path))
		return &server.Problem{Status: http.StatusLoopDetected, Detail: "The request came through here before."}
	case len(r.Header["Upgrade"]) > 0 && !(len(r.Header["Upgrade"]) == 1 && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")):
		return server.Errorf(http.StatusBadRequest, "Only websocket can be upgraded to.")
	case len(r.Header["Upgrade"]) > 0 && r.Body != nil && r.Body != http.NoBody: // where would the websocket begin?
		return server.Errorf(http.StatusBadRequest, "A request to upgrade has no body.")
	}
	return nil
}

// matching appends the rules of a request, up to a last one.
func (g *generation) matching(r *http.Request, at string, out []*rule) []*rule {
	for _, rule := range g.rules {
		if rule.match.matches(r, at) {
			out = append(out, rule)
			if rule.Last {
				break
			}
		}
	}
	return out
}

func (g *generation) upstreamOf(r *http.Request, at string) *upstream {
	for i := range g.routes {
		if g.routes[i].match.matches(r, at) {
			return g.routes[i].to
		}
	}
	return nil
}

// forward has the upstream answer.
func (x *exchange) forward(r *http.Request) error {
	if x.body = bodyOf(x.w); x.body != nil {
		x.body.sent = true
		if len(r.Trailer) > 0 {
			scrub(r.Trailer, x.g.underscores)
			x.body.atEnd = func() { scrub(r.Trailer, x.g.underscores) }
		}
	}
	if x.body != nil {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer x.body.watch(x.up.transport.ResponseHeaderTimeout, func() { cancel(errUnread) })()
		r = r.WithContext(ctx)
	}
	if x.up.transport.DisableKeepAlives { // the connection begins with the client's address
		r = r.WithContext(context.WithValue(r.Context(), clientKey{}, x.ends(r)))
	}
	proxy := httputil.ReverseProxy{
		Rewrite:        x.rewrite,
		Transport:      x.up.transport,
		ModifyResponse: x.answered,
		ErrorHandler:   func(_ http.ResponseWriter, _ *http.Request, err error) { x.err = err },
		BufferPool:     buffers,
		FlushInterval:  flushInterval,
		ErrorLog:       x.up.log,
	}
	proxy.ServeHTTP(x.w, r)
	if x.err != nil {
		return x.failure()
	}
	return nil
}

// ends returns the client's address, its port as 0 if a proxy has told it, and ours.
func (x *exchange) ends(r *http.Request) (e ends) {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	client := x.g.clients.address(r.Context(), r)
	if client == at.Addr().Unmap().WithZone("") {
		e.client = netip.AddrPortFrom(client, at.Port())
	} else {
		e.client = netip.AddrPortFrom(client, 0)
	}
	if here, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		at, _ := netip.ParseAddrPort(here.String())
		e.here = netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
	}
	return e
}

func (x *exchange) rewrite(pr *httputil.ProxyRequest) {
	x.sent = time.Now()
	x.up.rewrite(pr.In, pr.Out)
	x.g.clients.forward(pr.In, pr.Out, x.g.forwarded)
	x.p.sign(pr.In, pr.Out)
	pr.Out.Trailer = pr.In.Trailer // which has no values yet
	delete(pr.Out.Header, tokenHeader)
	if _, ok := pr.Out.Header["User-Agent"]; !ok {
		pr.Out.Header["User-Agent"] = nil // net/http would name itself
	}
}

// answered sees the upstream's final header, and not yet those before it (1xx), with which
// net/http/httputil takes away what was set so far.
func (x *exchange) answered(res *http.Response) error {
	if res.StatusCode < 100 {
		return fmt.Errorf("the status is %d", res.StatusCode)
	}
	if x.body != nil {
		x.body.answered.Store(true)
	}
	x.up.answers[min(max(res.StatusCode/100, 1), 5)-1].Inc()
	x.up.outage.succeed()
	x.up.times.observe(time.Since(x.sent))
	if x.tells && !hasSeedFields(res.Header) {
		x.told.write(x.w.Header())
	}
	return nil
}

// failure returns the response to a request that the upstream has not answered.
func (x *exchange) failure() error {
	r := x.req.Request
	if x.tells {
		x.told.write(x.w.Header())
	}
	if status := x.body.status(); status != 0 {
		return &server.Problem{Status: status, Detail: "The body could not be read to its end.", Err: x.err}
	}
	if r.Context().Err() != nil && errors.Is(x.err, context.Canceled) {
		panic(http.ErrAbortHandler) // there is nobody to tell
	}
	status := statusOf(x.err)
	x.p.metrics.upstreamFailed(x.up.name, strconv.Itoa(status))
	detail := "The server behind this one could not be reached."
	if status == http.StatusGatewayTimeout {
		detail = "The server behind this one took too long."
	}
	return &server.Problem{Status: status, Detail: detail, Err: fmt.Errorf("upstream %s: %w", x.up.name, x.err)}
}
