package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
)

// Conn is a raw connection with the lazy properties of its server. Each is resolved at most once for the connection,
// and closed after it. Nothing is committed, because there is no header. Properties that need an HTTP request, such
// as the session and the parameters, return errors.
//
// A Read fails if nothing is read or written for the server's IdleTimeout, and a Write fails if it takes that long.
// The timeout ends once the handler sets a deadline of its own. When the server shuts down, every Read returns
// [http.ErrServerClosed], and Write continues to work. The method NetConn of the dynamic type of the field Conn returns
// the listener's connection, such as a [*tls.Conn]. A handler may replace the field Conn, for example with a [*tls.Conn]
// around it.
type Conn struct {
	net.Conn // idle, or what the handler has replaced it with, for example a *tls.Conn around it
	idle     *idleConn
	host     reqctx.Host
}

// Context carries the connection's properties. It ends when the handler returns, and when Shutdown stops waiting.
func (c *Conn) Context() context.Context { return &c.host.Context }

// RateLimit returns the limit of the only policy, as [Request.RateLimit] does. It takes once for the whole
// connection, not for each message.
func (c *Conn) RateLimit() ratelimit.Limit {
	l, _ := ratelimit.From(&c.host.Context) // after an error, l returns it
	return l
}

// Go runs a task beside the handler. The task is cancelled when the handler returns.
func (c *Conn) Go(name string, fn func(ctx context.Context) error) error { return c.host.Go(name, fn) }

// Read reads from the field Conn.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.idle.failed.Store(true) // the end of a TLS connection is not an error of idle
	}
	return n, err
}

// OnClose registers fn to be called after the connection is closed.
func (c *Conn) OnClose(fn func() error) { c.host.OnClose(fn) }

// ServeConns accepts raw connections from l, which it closes in the end. It runs h for each connection on a separate
// goroutine, and closes the connection when h returns. ServeConns returns [http.ErrServerClosed] after Shutdown or
// Close. For TLS, l is a listener of package crypto/tls.
//
// The error of h is logged, unless the connection has ended: after a failed Read or Write, errors such as io.EOF, a
// timeout or a reset are expected. All errors are expected after a Shutdown that has stopped waiting.
func (s *Server) ServeConns(l net.Listener, h func(c *Conn) error) error {
	defer l.Close()
	stop := make(chan struct{})
	defer close(stop)
	_ = s.accepting.Spawn("listener", func(context.Context) error { // fails if the server has shut down
		select {
		case <-s.draining.Done():
			_ = l.Close()
		case <-stop:
		}
		return nil
	})
	var pause time.Duration
	for s.draining.Err() == nil {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.serveConn(nc, h)
		case s.draining.Err() != nil:
		case temporary(err): // for example, too many files are open
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.log.Error("accept failed; trying again", "error", err, "in", pause)
			select {
			case <-time.After(pause):
			case <-s.draining.Done():
			}
		default:
			return err
		}
	}
	return http.ErrServerClosed
}

func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// serveConn serves one connection on its own goroutine. Shutdown waits for it.
func (s *Server) serveConn(nc net.Conn, h func(c *Conn) error) {
	ctx, cancel := context.WithCancelCause(s.base)
	idle := &idleConn{Conn: nc, timeout: s.opts.IdleTimeout, draining: s.draining}
	c := &Conn{Conn: idle, idle: idle}
	c.host.Init(ctx, s.reg)
	err := s.endings.Spawn("connection", func(context.Context) error {
		stopDrain, stopCut := context.AfterFunc(s.draining, idle.drain), context.AfterFunc(s.base, idle.cut)
		defer func() {
			c.host.CancelTasks()
			if c.host.Err() == nil {
				c.endTLS()
				idle.linger()
			}
			cancel(reqctx.ErrFinished)
			_ = nc.Close()
			_ = c.host.Finish() // logs its errors
			stopDrain()
			stopCut()
		}()
		s.runConn(c, h)
		return nil
	})
	if err != nil { // the server has shut down
		cancel(errShutdown)
		_ = nc.Close()
	}
}

// runConn runs the handler, and logs its error or panic.
func (s *Server) runConn(c *Conn, h func(c *Conn) error) {
	peer, returned := "unknown", false
	defer func() {
		v := recover()
		if v == nil && !returned {
			v = lazy.ErrGoexit
		}
		if v != nil && v != http.ErrAbortHandler {
			s.logPanic(&c.host.Context, v, slog.String("peer", peer))
		}
	}()
	// The address may be in the first bytes of the connection (PROXY protocol), so this can block.
	if addr := c.idle.RemoteAddr(); addr != nil {
		peer = addr.String()
	}
	c.host.SetRemoteAddr(peer)
	err := h(c)
	returned = true
	if err != nil && !c.ended(err) {
		s.log.Error("connection failed", slog.String("peer", peer), slog.String("error", fmt.Sprint(err)))
	}
}

// endTLS tells the peer that no more data follows, if the handler has replaced the field Conn with a TLS connection.
func (c *Conn) endTLS() {
	if t, ok := c.Conn.(*tls.Conn); ok && !c.idle.failed.Load() {
		_ = t.CloseWrite()
	}
}

// ended reports whether err is expected because the connection has ended. Connections of a store fail with the same
// errors, so these are only expected after a Read or Write of c has failed.
func (c *Conn) ended(err error) bool {
	if c.host.Err() != nil {
		return true
	}
	if !c.idle.failed.Load() {
		return false
	}
	for _, end := range []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, http.ErrServerClosed, http.ErrAbortHandler,
		os.ErrDeadlineExceeded, syscall.ECONNRESET, syscall.EPIPE, context.Canceled,
	} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}
