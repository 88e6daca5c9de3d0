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

// errShutdown is the cause of the end of requests that Shutdown or Close did not wait for.
var errShutdown = errors.New("server: shut down")

// ListenAndServe serves HTTP on a TCP address until Shutdown or Close, and then returns [http.ErrServerClosed]. An
// empty address means ":http".
func (s *Server) ListenAndServe(addr string) error {
	l, err := graceful.Listen(cmp.Or(addr, ":http"))
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return s.Serve(l)
}

// Serve serves HTTP on l until Shutdown or Close, closes it, and returns [http.ErrServerClosed]. It may be called for
// several listeners. It logs a warning if Options.Params.Routes has a pattern that no route has.
//
// A listener of [net.Listen] uses Multipath TCP, and Shutdown can reset connections that arrive while it is closed.
// [net.ListenConfig.SetMultipathTCP] turns that off, as ListenAndServe does.
func (s *Server) Serve(l net.Listener) error { return s.serveOn(l, l) }

// serveOn serves HTTP on l, which is accepted itself or wraps it.
func (s *Server) serveOn(l, accepted net.Listener) error {
	s.checkBudgets()
	return s.httpServer().Serve(l, accepted)
}

// ListenAndServeTLS serves HTTPS, with HTTP/2, on a TCP address until Shutdown or Close, and then returns
// [http.ErrServerClosed]. The files are in PEM. When they change, new connections get the new certificate. While the
// new files are missing or wrong, connections get the old one.
func (s *Server) ListenAndServeTLS(addr, certFile, keyFile string) error {
	l, err := graceful.Listen(cmp.Or(addr, ":https"))
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return s.ServeTLS(l, certFile, keyFile)
}

// ServeTLS is [Server.ListenAndServeTLS] for l, which it closes.
func (s *Server) ServeTLS(l net.Listener, certFile, keyFile string) error {
	get, err := Certificate(certFile, keyFile, s.log)
	if err != nil {
		_ = l.Close()
		return err
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: get}
	return s.serveOn(tls.NewListener(l, conf), l)
}

// Shutdown accepts the connections that are waiting and then no more. It waits for the requests and raw connections
// in progress, their tasks and their clean-ups. If ctx ends first, it cancels them and returns [context.Cause] of
// ctx. It does not wait for hijacked connections, but cancels their requests. The server can't be used again.
//
// To lose no request that is on its way, it closes a connection after the next response, or after a second without a
// request.
//
// ListenAndServe and similar methods return when Shutdown begins, so main has to wait for Shutdown, as
// [Server.RunUntil] does. A Server within another [http.Server] only needs a Shutdown for its raw connections.
func (s *Server) Shutdown(ctx context.Context) error {
	_ = s.accepting.Close()
	err := s.httpServer().Shutdown(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.endings.Close() // the requests have logged their errors
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.abort(errShutdown)
	if err != nil && err == ctx.Err() {
		return context.Cause(ctx)
	}
	return err
}

// RunUntil calls serve, which calls [Server.ListenAndServe] or a similar method, until ctx ends. Then it calls
// [Server.Shutdown] and waits for at most Options.ShutdownTimeout. It returns nil after a complete Shutdown, the
// error of an incomplete one, or the error of serve if that returned by itself. serve runs on its own goroutine, so a
// panic in it ends the process.
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

// Close closes all listeners and connections and cancels all requests. It does not wait.
func (s *Server) Close() error {
	_ = s.accepting.Close()
	s.abort(errShutdown)
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
