package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/internal/graceful"
	"github.com/lazyreq/lazyreq/internal/netaddr"
	"github.com/lazyreq/lazyreq/server"
)

// Server accepts connections for a [Proxy]. Make it with [Proxy.Server].
type Server struct {
	p        *Proxy
	http     *http.Server
	graceful *graceful.Server
	abort    context.CancelCauseFunc
	accepts  throttledLog   // for errors of Accept
	upgrades sync.WaitGroup // counts websockets, for which net/http doesn't wait
}

// errStopped is the cause that cancels requests at the end of the grace period.
var errStopped = errors.New("proxy: stopped")

// These are the flow-control windows of HTTP/2, in bytes. By default, a stream's window is as large as the
// connection's. A single upload that the upstream doesn't read would then block all other uploads of the connection.
const (
	streamWindow = 256 << 10
	connWindow   = 4<<20 - 1 // the largest value that net/http accepts
)

// Server returns a server with the timeouts of the current configuration. Of these, a reload changes only Stall.
func (p *Proxy) Server() *Server {
	s := p.newServer()
	s.http.Handler = s.logPanics(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header["Upgrade"]) > 0 {
			s.upgrades.Add(1)
			defer s.upgrades.Done()
		}
		p.serve(w, r, s.graceful)
	})
	return s
}

// AdminServer returns a server for [Proxy.Admin], which needs a separate address.
func (p *Proxy) AdminServer() *Server {
	s := p.newServer()
	s.http.Handler = s.logPanics(p.Admin().ServeHTTP)
	return s
}

func (p *Proxy) newServer() *Server {
	c := &p.current.Load().config
	base, abort := context.WithCancelCause(context.Background())
	s := &Server{p: p, abort: abort}
	s.http = &http.Server{
		ReadHeaderTimeout: c.Timeouts.Header,
		WriteTimeout:      2 * c.Timeouts.Stall, // the first deadline of responseWriter
		IdleTimeout:       c.Timeouts.Idle,
		MaxHeaderBytes:    int(c.MaxHeaderBytes),
		HTTP2:             &http.HTTP2Config{MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connWindow},
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          p.debugLog, // net/http logs mistakes of clients
	}
	s.graceful = graceful.New(s.http)
	return s
}

// logPanics returns a handler that logs a panic of h as an error. net/http would log it at level debug, with the
// mistakes of clients.
func (s *Server) logPanics(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				if v != http.ErrAbortHandler {
					s.p.log.Error("panic", slog.Any("value", v), slog.String("stack", string(debug.Stack())))
				}
				panic(http.ErrAbortHandler)
			}
		}()
		h(w, r)
	})
}

// Serve serves the clients of l, which [Proxy.Listen] returns, until Shutdown. It then returns
// [http.ErrServerClosed].
func (s *Server) Serve(l net.Listener) error {
	base := l
	if opened, ok := l.(*listener); ok {
		base = opened.base
	}
	return s.graceful.Serve(acceptLogger{l, s}, base)
}

// acceptLogger is a listener that logs errors of Accept. After such an error, net/http calls Accept again.
type acceptLogger struct {
	net.Listener
	s *Server
}

// Accept implements [net.Listener].
func (l acceptLogger) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) {
		l.s.accepts.write(l.s.p.log, slog.LevelError, "no connection can be accepted", slog.String("error", err.Error()))
	}
	return conn, err
}

// Shutdown stops the server. It accepts the connections that are already waiting, and then no more. Responses
// announce the end of their connections. Shutdown waits for requests and websockets, and closes connections that have
// had no request for a second. If ctx ends first, it cuts all connections and returns [context.Cause] of ctx.
func (s *Server) Shutdown(ctx context.Context) error {
	s.p.stopping.Store(true)
	err := s.graceful.Shutdown(ctx)
	if err == nil {
		err = s.waitForUpgrades(ctx)
	}
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

// Close cuts all connections at once.
func (s *Server) Close() error {
	s.abort(errStopped)
	return s.http.Close()
}

// waitForUpgrades waits until all websockets have ended. It is called when no new ones can begin.
func (s *Server) waitForUpgrades(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		s.upgrades.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Listen listens on an address, with TLS and the PROXY protocol as configured.
func (p *Proxy) Listen(c config.Listener) (net.Listener, error) {
	var conf *tls.Config
	if c.Cert != "" {
		get, err := server.Certificate(c.Cert, c.Key, p.log)
		if err != nil {
			return nil, err
		}
		conf = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: get}
	}
	base, err := graceful.Listen(c.Address)
	if err != nil {
		return nil, err
	}
	l := base
	if len(c.ProxyProtocol) > 0 {
		var from []netip.Prefix
		for _, prefix := range c.ProxyProtocol {
			from = append(from, netaddr.Unmap(prefix))
		}
		l = &headerListener{Listener: &proxyproto.Listener{
			Listener: l, ReadHeaderTimeout: 10 * time.Second, ConnPolicy: requireHeader(from),
		}, log: p.log}
	}
	if conf != nil {
		l = tls.NewListener(l, conf)
	}
	return &listener{l, base}, nil
}

// listener is a listener on top of base, which [graceful.Listen] has returned.
type listener struct {
	net.Listener
	base net.Listener
}
