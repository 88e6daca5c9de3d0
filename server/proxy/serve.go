package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/lazyreq/lazyreq/server"
)

// Server accepts connections for a [Proxy]. Make it with [Proxy.Server].
type Server struct {
	p     *Proxy
	http  *http.Server
	abort context.CancelCauseFunc
}

// errStopped is the cause of requests that Shutdown did not wait for.
var errStopped = errors.New("proxy: stopped")

// Server returns a server with the bounds of a configuration.
func (p *Proxy) Server(l Limits) *Server {
	base, abort := context.WithCancelCause(context.Background())
	return &Server{p: p, abort: abort, http: &http.Server{
		Handler:           p,
		ReadHeaderTimeout: cmp.Or(l.Header, 10*time.Second),
		WriteTimeout:      2 * cmp.Or(l.Stall, time.Minute), // of what isn't an upstream's (see writer), after a body nobody reads
		IdleTimeout:       cmp.Or(l.Idle, 2*time.Minute),
		MaxHeaderBytes:    int(cmp.Or(l.HeaderBytes, 64<<10)),
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}}
}

// Serve serves clients of l, which [Listener.Open] has made, until Shutdown; then it
// returns [http.ErrServerClosed].
func (s *Server) Serve(l net.Listener) error { return s.http.Serve(l) }

// Shutdown stops to accept connections and waits for the requests that are under way.
// When ctx ends first, it cuts them off and returns [context.Cause] of ctx. Websockets are
// cut off at once.
func (s *Server) Shutdown(ctx context.Context) error {
	s.p.stopping.Store(true)
	err := s.http.Shutdown(ctx)
	s.abort(errStopped)
	if err == nil {
		return nil
	}
	_ = s.http.Close()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Open listens, and lets TLS and the PROXY protocol be spoken as the listener says.
func (l Listener) Open(log *slog.Logger) (net.Listener, error) {
	if (l.Cert == "") != (l.Key == "") {
		return nil, fmt.Errorf("listen %s: cert and key belong together", l.Address)
	}
	var conf *tls.Config
	if l.Cert != "" {
		get, err := server.Certificate(l.Cert, l.Key, log)
		if err != nil {
			return nil, err
		}
		conf = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: get}
	}
	out, err := net.Listen("tcp", l.Address)
	if err != nil {
		return nil, err
	}
	if len(l.ProxyProtocol) > 0 {
		out = &proxyproto.Listener{Listener: out, ReadHeaderTimeout: 10 * time.Second, ConnPolicy: announced(prefixes(l.ProxyProtocol))}
	}
	if conf != nil {
		out = tls.NewListener(out, conf)
	}
	return out, nil
}

// announced wants a PROXY protocol header of the connections from some addresses. To the
// others it is no more than a malformed request.
func announced(from []netip.Prefix) proxyproto.ConnPolicyFunc {
	return func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
		at, err := netip.ParseAddrPort(o.Upstream.String())
		if err == nil && within(from, at.Addr().Unmap().WithZone("")) {
			return proxyproto.REQUIRE, nil
		}
		return proxyproto.SKIP, nil
	}
}
