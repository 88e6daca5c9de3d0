package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// idleConn is a connection with an idle timeout. When the server shuts down, its reads fail.
type idleConn struct {
	net.Conn
	timeout  time.Duration   // none if it is not positive
	draining context.Context // ends when the server shuts down

	mu  sync.Mutex // held while a deadline is set
	own bool       // the handler has set a deadline

	failed atomic.Bool // Read or Write has returned an error
}

// NetConn returns the connection below.
func (c *idleConn) NetConn() net.Conn { return c.Conn }

// Read implements [net.Conn].
func (c *idleConn) Read(p []byte) (n int, err error) {
	c.extend(c.Conn.SetReadDeadline)
	if c.draining.Err() == nil {
		n, err = c.Conn.Read(p)
	}
	if n == 0 && c.draining.Err() != nil {
		err = http.ErrServerClosed
	}
	if err != nil {
		c.failed.Store(true)
	}
	return n, err
}

// Write implements [net.Conn]. It also extends the deadline of reads, because a peer that only listens is not idle.
func (c *idleConn) Write(p []byte) (int, error) {
	c.extend(c.Conn.SetDeadline)
	n, err := c.Conn.Write(p)
	if err != nil {
		c.failed.Store(true)
	}
	return n, err
}

// extend sets a deadline to the end of the idle timeout.
func (c *idleConn) extend(set func(time.Time) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timeout > 0 && !c.own {
		_ = set(time.Now().Add(c.timeout))
	}
	c.endReads()
}

// SetDeadline sets both deadlines and ends the idle timeout.
func (c *idleConn) SetDeadline(t time.Time) error { return c.setOwn(t, c.Conn.SetDeadline) }

// SetReadDeadline sets the deadline of reads and ends the idle timeout.
func (c *idleConn) SetReadDeadline(t time.Time) error { return c.setOwn(t, c.Conn.SetReadDeadline) }

// SetWriteDeadline sets the deadline of writes and ends the idle timeout.
func (c *idleConn) SetWriteDeadline(t time.Time) error { return c.setOwn(t, c.Conn.SetWriteDeadline) }

func (c *idleConn) setOwn(t time.Time, set func(time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.own {
		c.own = true
		_ = c.Conn.SetDeadline(time.Time{}) // removes the idle timeout
	}
	err := set(t)
	c.endReads()
	return err
}

// drain makes waiting and later reads fail. It is called when the server shuts down.
func (c *idleConn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endReads()
}

// endReads makes reads fail if the server is shutting down. c.mu is held.
func (c *idleConn) endReads() {
	if c.draining.Err() != nil {
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// lingerTime and lingerBytes bound how long linger waits and how much it reads.
const (
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 256 << 10
)

// linger gives the peer time to read what the handler wrote last. Closing a connection with unread input resets the
// connection, and the peer may lose data. So linger first ends its own side, and then discards input until the peer
// has ended, too.
func (c *idleConn) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || c.failed.Load() || half.CloseWrite() != nil {
		return
	}
	_ = c.Conn.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
}

// cut closes the connection at once. It does not close the TLS layer, which would send an alert and wait for a peer
// that does not read.
func (c *idleConn) cut() {
	if t, ok := c.Conn.(interface{ NetConn() net.Conn }); ok {
		_ = t.NetConn().Close()
		return
	}
	_ = c.Conn.Close()
}
