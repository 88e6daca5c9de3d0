package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
)

// Conn is a raw connection with lazy properties: the server's, resolved at most
// once for the connection, and closed after it. There is no HTTP request and no
// header, so nothing is committed; session and params have nothing to go by and
// return errors.
//
// Read and Write are those of [net.Conn], with the server's IdleTimeout: a Read fails
// after so long without anything read or written, and a Write that takes so long. A
// handler that sets deadlines of its own is left alone. Once the server is shutting
// down, Read returns [http.ErrServerClosed], also one that waits, and Write goes on
// to work.
type Conn struct {
	net.Conn
	host reqctx.Host
	idle time.Duration // not above 0: none

	mu       sync.Mutex // orders our deadlines with drain and the handler's
	draining bool
	own      bool // the handler sets the deadlines

	failed atomic.Bool // Read or Write has returned an error
}

// ConnHandler serves a raw connection. The connection is closed when it returns.
// Its error is logged, unless it is the connection's end (io.EOF, a deadline,
// a reset) after Read or Write has failed, or the server has stopped waiting.
type ConnHandler func(c *Conn) error

// Context carries the connection's properties. It ends when the handler returns,
// and when Shutdown stops waiting.
func (c *Conn) Context() context.Context { return &c.host.Context }

// Get returns a property by name, resolving it first if need be.
func (c *Conn) Get(name string) (any, error) { return reqctx.Get(&c.host.Context, name) }

// Set makes v the property's value, after its Store function has accepted it.
func (c *Conn) Set(name string, v any) error { return reqctx.Set(&c.host.Context, name, v) }

// Resolve resolves several properties in parallel and waits for all of them.
func (c *Conn) Resolve(names ...string) error { return reqctx.Resolve(&c.host.Context, names...) }

// RateLimit returns the limit of the only policy, as [Request.RateLimit] does. It takes once for the
// whole connection, not for each message.
func (c *Conn) RateLimit() ratelimit.Limit {
	l, _ := ratelimit.From(&c.host.Context) // after an error, l returns it
	return l
}

// Go runs a task beside the handler. It is cancelled when the handler returns.
func (c *Conn) Go(name string, fn func(ctx context.Context) error) error { return c.host.Go(name, fn) }

// OnClose registers fn to be called after the connection is closed.
func (c *Conn) OnClose(fn func() error) { c.host.OnClose(fn) }

// Read reads from the connection.
func (c *Conn) Read(p []byte) (int, error) {
	if err := c.extend(c.Conn.SetReadDeadline); err != nil {
		c.noteFailure(err)
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if err != nil && n == 0 && c.isDraining() {
		err = http.ErrServerClosed
	}
	c.noteFailure(err)
	return n, err
}

// Write writes to the connection.
func (c *Conn) Write(p []byte) (int, error) {
	_ = c.extend(c.Conn.SetDeadline) // a peer that only listens is not idle
	n, err := c.Conn.Write(p)
	c.noteFailure(err)
	return n, err
}

func (c *Conn) noteFailure(err error) {
	if err != nil {
		c.failed.Store(true)
	}
}

// extend moves a deadline on by the idle timeout. It returns an error, for reads, if the
// server is shutting down.
func (c *Conn) extend(set func(time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle > 0 && !c.own {
		_ = set(time.Now().Add(c.idle))
	}
	if c.draining {
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
		return http.ErrServerClosed
	}
	return nil
}

// SetDeadline is [net.Conn]'s, and ends the server's own idle timeout.
func (c *Conn) SetDeadline(t time.Time) error { return c.setOwn(t, c.Conn.SetDeadline) }

// SetReadDeadline is [net.Conn]'s, and ends the server's own idle timeout.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setOwn(t, c.Conn.SetReadDeadline) }

// SetWriteDeadline is [net.Conn]'s, and ends the server's own idle timeout.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setOwn(t, c.Conn.SetWriteDeadline) }

func (c *Conn) setOwn(t time.Time, set func(time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.own {
		c.own = true
		_ = c.Conn.SetDeadline(time.Time{}) // ours would still be there
	}
	err := set(t)
	if c.draining {
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
	return err
}

// drain makes reads fail from now on.
func (c *Conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
}

func (c *Conn) isDraining() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.draining
}

// ServeConns accepts raw connections from l, which it closes in the end, and runs h
// for each on a goroutine of its own, until Shutdown or Close; then it returns
// [http.ErrServerClosed]. For TLS, l is a tls.Listener.
func (s *Server) ServeConns(l net.Listener, h ConnHandler) error {
	if !s.conns.listen(&l) {
		_ = l.Close()
		return http.ErrServerClosed
	}
	defer s.conns.unlisten(&l)
	var pause time.Duration
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.serveConn(nc, h)
		case s.conns.isClosing():
			return http.ErrServerClosed
		case temporary(err): // too many open files: what is open will be closed
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.log.Error("accept failed; trying again", "error", err, "in", pause)
			select {
			case <-time.After(pause):
			case <-s.base.Done():
			}
		default:
			return err
		}
	}
}

func temporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// serveConn serves one connection on a goroutine of its own.
func (s *Server) serveConn(nc net.Conn, h ConnHandler) {
	ctx, cancel := context.WithCancelCause(s.base)
	c := &Conn{Conn: nc, idle: s.opts.IdleTimeout}
	c.host.Init(ctx, s.reg)
	if !s.conns.add(c) {
		cancel(errShutdown)
		_ = nc.Close()
		return
	}
	go func() {
		defer s.conns.remove(c)
		defer func() {
			c.host.CancelTasks()
			c.linger()
			cancel(reqctx.ErrFinished)
			_ = nc.Close()
			_ = c.host.Finish() // logs its errors
		}()
		// Behind a proxy, the address may come from the connection: it can take a while.
		peer := "unknown"
		if addr := nc.RemoteAddr(); addr != nil {
			peer = addr.String()
		}
		c.host.SetRemoteAddr(peer)
		s.runConn(c, h)
	}()
}

// runConn runs the handler, and logs its error or panic.
func (s *Server) runConn(c *Conn, h ConnHandler) {
	peer := slog.String("peer", c.host.RemoteAddr())
	returned := false
	defer func() {
		v := recover()
		if v == nil && !returned {
			v = lazy.ErrGoexit
		}
		if v != nil && v != http.ErrAbortHandler {
			s.logPanic(&c.host.Context, v, peer)
		}
	}()
	err := h(c)
	returned = true
	if err != nil && !c.ended(err) {
		s.log.Error("connection failed", peer, slog.String("error", fmt.Sprint(err)))
	}
}

// ended reports whether the handler's error is only the connection's end: by the peer, the
// handler or the server. A store's connection ends with the same errors, so they count only after
// this one's has.
func (c *Conn) ended(err error) bool {
	if c.host.Err() != nil {
		return true
	}
	if !c.failed.Load() {
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

// lingerTime and lingerBytes bound how long linger waits and how much it reads.
const (
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 256 << 10
)

// linger lets the peer read what the handler wrote last: closing a connection with unread input
// resets it, and the peer can lose what it has not read yet. So linger sends the end first, and
// drops what still comes until the peer has ended, too.
func (c *Conn) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || c.failed.Load() || c.host.Err() != nil || half.CloseWrite() != nil {
		return
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
}

// cut closes the connection at once. Closing a TLS connection would send the peer an alert, and
// wait if it does not read.
func (c *Conn) cut() {
	if t, ok := c.Conn.(interface{ NetConn() net.Conn }); ok {
		_ = t.NetConn().Close()
		return
	}
	_ = c.Conn.Close()
}
