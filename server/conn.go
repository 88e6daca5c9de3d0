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

// Conn is a raw connection with the lazy properties of its server. Each is resolved at most once for the connection,
// and closed after it. Nothing is committed, because there is no header. Properties that need an HTTP request, such
// as the session and the parameters, return errors.
//
// Read and Write are those of [net.Conn] with the server's IdleTimeout. A Read fails if nothing is read or written
// for that long, and a Write fails if it takes that long. The timeout ends once the handler sets a deadline of its
// own. When the server shuts down, every Read returns [http.ErrServerClosed], and Write continues to work.
type Conn struct {
	net.Conn
	host reqctx.Host
	idle time.Duration // none if it is not positive

	mu       sync.Mutex // held while a deadline is set
	draining bool
	own      bool // the handler has set a deadline

	failed atomic.Bool // Read or Write has returned an error
}

// ConnHandler serves a raw connection, which is closed when it returns. Its error is logged unless the connection has
// ended: after a failed Read or Write, errors such as io.EOF, a timeout or a reset are expected. After a Shutdown
// that has stopped waiting, so is any error.
type ConnHandler func(c *Conn) error

// Context carries the connection's properties. It ends when the handler returns, and when Shutdown stops waiting.
func (c *Conn) Context() context.Context { return &c.host.Context }

// RateLimit returns the limit of the only policy, as [Request.RateLimit] does. It takes once for the whole
// connection, not for each message.
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

// extend sets a deadline to the end of the idle timeout. If the server is shutting down, it makes reads fail and
// returns an error.
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

// SetDeadline sets both deadlines as [net.Conn] does. It ends the server's idle timeout.
func (c *Conn) SetDeadline(t time.Time) error { return c.setOwn(t, c.Conn.SetDeadline) }

// SetReadDeadline sets the deadline of reads. It ends the server's idle timeout.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setOwn(t, c.Conn.SetReadDeadline) }

// SetWriteDeadline sets the deadline of writes. It ends the server's idle timeout.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setOwn(t, c.Conn.SetWriteDeadline) }

func (c *Conn) setOwn(t time.Time, set func(time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.own {
		c.own = true
		_ = c.Conn.SetDeadline(time.Time{}) // removes the idle timeout
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

// ServeConns accepts raw connections from l, which it closes in the end, and runs h for each on its own goroutine. It
// returns [http.ErrServerClosed] after Shutdown or Close. For TLS, l is a listener of package crypto/tls.
func (s *Server) ServeConns(l net.Listener, h ConnHandler) error {
	defer l.Close()
	listener := &connListener{l}
	if !s.conns.add(listener) {
		return http.ErrServerClosed
	}
	defer s.conns.remove(listener)
	var pause time.Duration
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.serveConn(nc, h)
		case s.conns.isClosing():
			return http.ErrServerClosed
		case temporary(err): // for example, too many files are open
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
		// The address may be in the first bytes of the connection (PROXY protocol), so this can block.
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

// ended reports whether err is expected because the connection has ended. Connections of a store fail with the same
// errors, so these are only expected after a Read or Write of c has failed.
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

// linger gives the peer time to read what the handler wrote last. Closing a connection with unread input resets it,
// and the peer may lose data. So linger first ends its own side, and then discards input until the peer has ended,
// too.
func (c *Conn) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || c.failed.Load() || c.host.Err() != nil || half.CloseWrite() != nil {
		return
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
}

// cut closes the connection at once. It does not close the TLS layer, which would send an alert and wait for a peer
// that does not read.
func (c *Conn) cut() {
	if t, ok := c.Conn.(interface{ NetConn() net.Conn }); ok {
		_ = t.NetConn().Close()
		return
	}
	_ = c.Conn.Close()
}
