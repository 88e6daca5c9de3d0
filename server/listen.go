package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/lazyreq/lazyreq/internal/graceful"
)

// errShutdown is the cause of requests that Shutdown or Close did not wait for.
var errShutdown = errors.New("server: shut down")

// ListenAndServe serves HTTP on a TCP address until Shutdown or Close, and then
// returns [http.ErrServerClosed]. An empty address is ":http".
func (s *Server) ListenAndServe(addr string) error {
	l, err := net.Listen("tcp", cmp.Or(addr, ":http"))
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return s.Serve(l)
}

// Serve serves HTTP on l, which it closes in the end, until Shutdown or Close,
// and then returns [http.ErrServerClosed]. It may be called for several
// listeners.
func (s *Server) Serve(l net.Listener) error { return s.httpServer().Serve(l) }

// ListenAndServeTLS serves HTTPS, with HTTP/2, on a TCP address until Shutdown or
// Close, and then returns [http.ErrServerClosed]. The files are in PEM; when they
// change, new connections get the new certificate, and as long as the new files are
// missing or wrong they get the old one.
func (s *Server) ListenAndServeTLS(addr, certFile, keyFile string) error {
	l, err := net.Listen("tcp", cmp.Or(addr, ":https"))
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return s.ServeTLS(l, certFile, keyFile)
}

// ServeTLS is [Server.ListenAndServeTLS] on l, which it closes in the end.
func (s *Server) ServeTLS(l net.Listener, certFile, keyFile string) error {
	cert, err := loadCertificate(certFile, keyFile, s.log)
	if err != nil {
		_ = l.Close()
		return err
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: cert.get}
	return s.httpServer().Serve(tls.NewListener(l, conf))
}

// Shutdown stops accepting connections and waits for the requests and raw
// connections in progress, their tasks and their clean-ups. When ctx ends first, it cancels them with the
// connections' contexts and returns [context.Cause] of ctx. It does not wait for
// hijacked connections, but cancels their requests as well. The server can't be used again.
// ListenAndServe and its like return when Shutdown begins, so main has to wait for Shutdown.
//
// A Server within another [http.Server] needs no Shutdown of its own, unless it serves raw
// connections.
func (s *Server) Shutdown(ctx context.Context) error {
	quiet := s.conns.drain()
	err := graceful.Shutdown(ctx, s.httpServer())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.endings.Close() // the requests have logged their errors
		<-quiet
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		err = ctx.Err()
		s.conns.close()
	}
	s.abort(errShutdown)
	if err != nil && err == ctx.Err() {
		return context.Cause(ctx)
	}
	return err
}

// Close closes all listeners and connections and cancels all requests, without
// waiting for anything.
func (s *Server) Close() error {
	s.abort(errShutdown)
	s.conns.close()
	return s.httpServer().Close()
}

func (s *Server) httpServer() *http.Server {
	s.httpOnce.Do(func() {
		s.http = &http.Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.serve(w, r, s.handler, true)
			}),
			ReadHeaderTimeout: s.opts.ReadHeaderTimeout,
			ReadTimeout:       s.opts.ReadTimeout,
			WriteTimeout:      s.opts.WriteTimeout,
			IdleTimeout:       s.opts.IdleTimeout,
			MaxHeaderBytes:    s.opts.MaxHeaderBytes,
			BaseContext:       func(net.Listener) context.Context { return s.base },
			ConnContext: func(ctx context.Context, c net.Conn) context.Context {
				boundUnsent(c)
				return ctx
			},
			ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		}
	})
	return s.http
}
