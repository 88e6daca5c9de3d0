package graceful

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// quietTime is how long a stopped listener waits for a last connection. A handshake of TCP takes less
	// within a data centre.
	quietTime = 2 * time.Millisecond
	// maxStopTime bounds the time if there are always new connections.
	maxStopTime = 200 * time.Millisecond
)

// Listen listens on a TCP address, without Multipath TCP, whose listeners can't refuse.
func Listen(address string) (net.Listener, error) {
	var c net.ListenConfig
	c.SetMultipathTCP(false)
	return c.Listen(context.Background(), "tcp", address)
}

// deadliner is a listener of the kernel.
type deadliner interface{ SetDeadline(time.Time) error }

// listener is a listener that can be stopped without resetting the connections that wait to be accepted.
type listener struct {
	net.Listener
	base  deadliner     // nil if connections don't wait in the kernel
	ended chan struct{} // closed by end
	once  sync.Once

	mu      sync.Mutex
	stopped time.Time // zero until stop
}

func newListener(l, base net.Listener) *listener {
	out := &listener{Listener: l, ended: make(chan struct{})}
	out.base, _ = base.(deadliner)
	return out
}

// stop has Accept return the connections that wait, and then [net.ErrClosed].
func (l *listener) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stopped.IsZero() {
		return
	}
	l.stopped = time.Now()
	dropSYN(l.base)
	if l.base == nil || l.base.SetDeadline(l.stopped) != nil {
		_ = l.Close()
	}
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	for {
		stopping, over := l.beginAccept()
		if over {
			return nil, net.ErrClosed
		}
		conn, err := l.Listener.Accept()
		switch {
		case !errors.Is(err, os.ErrDeadlineExceeded) || !l.isStopped():
			return conn, err
		case stopping: // no connection has waited since this Accept began
			return nil, net.ErrClosed
		}
	}
}

// beginAccept prepares Accept. It reports whether the listener was stopped, and whether Accept is not to
// wait for connections any more.
func (l *listener) beginAccept() (stopping, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped.IsZero() {
		return false, false
	}
	if l.base == nil || time.Since(l.stopped) > maxStopTime {
		return true, true
	}
	_ = l.base.SetDeadline(time.Now().Add(quietTime))
	return true, false
}

func (l *listener) isStopped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.stopped.IsZero()
}

// Close implements [net.Listener].
func (l *listener) Close() (err error) {
	l.once.Do(func() { err = l.Listener.Close() })
	return err
}

// end closes the listener after the last Accept.
func (l *listener) end() {
	_ = l.Close()
	close(l.ended)
}
