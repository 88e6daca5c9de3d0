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
	l, err := graceful.Listen(cmp.Or(addr, ":http"))
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return s.Serve(l)
}

// Serve serves HTTP on l, which it closes in the end, until Shutdown or Close,
// and then returns [http.ErrServerClosed]. It may be called for several
// listeners. It returns an [*OptionError] if Options.Params.Routes has a pattern that no route has. It
// logs a warning instead if there is a middleware or a route of a subtree, whose handler may be a router.
//
// A listener of [net.Listen] has Multipath TCP: Shutdown can reset a connection that
// comes to it as it is closed. It resets none if [net.ListenConfig.SetMultipathTCP] turns that
// off, as ListenAndServe does.
func (s *Server) Serve(l net.Listener) error { return s.serveOn(l, l) }

// serveOn serves HTTP on l, which is accepted itself or a layer around it.
func (s *Server) serveOn(l, accepted net.Listener) error {
	if err := s.checkBudgets(); err != nil {
		_ = l.Close()
		return err
	}
	return s.httpServer().Serve(l, accepted)
}

// ListenAndServeTLS serves HTTPS, with HTTP/2, on a TCP address until Shutdown or
// Close, and then returns [http.ErrServerClosed]. The files are in PEM; when they
// change, new connections get the new certificate, and as long as the new files are
// missing or wrong they get the old one.
func (s *Server) ListenAndServeTLS(addr, certFile, keyFile string) error {
	l, err := graceful.Listen(cmp.Or(addr, ":https"))
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
	return s.serveOn(tls.NewListener(l, conf), l)
}

// Shutdown accepts the connections that wait, and then no more. It waits for the requests and raw
// connections in progress, their tasks and their clean-ups. When ctx ends first, it cancels them with the
// connections' contexts and returns [context.Cause] of ctx. It does not wait for
// hijacked connections, but cancels their requests as well. The server can't be used again.
//
// So that no request is lost that is on its way, a connection ends with its next response, or when it
// has had no request for a second.
//
// ListenAndServe and its like return when Shutdown begins, so main has to wait for Shutdown,
// as [Server.RunUntil] does.
//
// A Server within another [http.Server] needs no Shutdown of its own, unless it serves raw
// connections.
func (s *Server) Shutdown(ctx context.Context) error {
	quiet := s.conns.drain()
	err := s.httpServer().Shutdown(ctx)
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

// RunUntil calls serve, which calls [Server.ListenAndServe] or another method that serves, until ctx
// ends, and then [Server.Shutdown], which waits for at most Options.ShutdownTimeout. It returns nil
// after a complete Shutdown, the error of an incomplete one, and that of serve if it ended by itself.
// serve runs on a goroutine of its own, so a panic in it ends the process: the caller of RunUntil cannot
// recover it.
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	context.AfterFunc(ctx, stop) // a second signal ends the process at once
//	err := srv.RunUntil(ctx, func() error { return srv.ListenAndServe(":8080") })
func (s *Server) RunUntil(ctx context.Context, serve func() error) error {
	served := make(chan error, 1)
	go func() { served <- serve() }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	grace := context.WithoutCancel(ctx)
	if d := s.opts.ShutdownTimeout; d > 0 {
		var cancel context.CancelFunc
		grace, cancel = context.WithTimeoutCause(grace, d, fmt.Errorf("server: requests were cancelled %v after the shutdown began", d))
		defer cancel()
	}
	err := s.Shutdown(grace)
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
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

func (s *Server) httpServer() *graceful.Server {
	s.httpOnce.Do(func() {
		s.http = graceful.New(&http.Server{
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
		})
	})
	return s.http
}
