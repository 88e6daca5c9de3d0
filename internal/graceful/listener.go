package graceful

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// quietTime is how long a stopped listener waits for a last connection. Within a data centre, a TCP handshake takes
	// less time.
	quietTime = 2 * time.Millisecond
	// maxStopTime is how long a stopped listener accepts connections if new ones come all the time.
	maxStopTime = 200 * time.Millisecond
)

// Listen listens on a TCP address. It does not use Multipath TCP, because its listeners cannot refuse connections.
func Listen(address string) (net.Listener, error) {
	var c net.ListenConfig
	c.SetMultipathTCP(false)
	return c.Listen(context.Background(), "tcp", address)
}

// deadliner is a listener whose connections wait in the kernel until they are accepted.
type deadliner interface{ SetDeadline(time.Time) error }

// listener is a listener that can be stopped without resetting the connections that wait to be accepted.
type listener struct {
	net.Listener
	base  deadliner     // may be nil
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

// stop makes Accept return the waiting connections, and then [net.ErrClosed].
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

// beginAccept sets the deadline of an Accept. stopping reports whether the listener was stopped, and over whether
// Accept must return without waiting.
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

// DelayClose makes net/http end the connection of w half a second after the response. net/http does this itself when a
// part of the request's body is unread. But it closes the connection at once if the client has asked for the end of the
// connection and, before Go 1.27, after "Expect: 100-continue". Then the reset can reach the client before the response.
func DelayClose(w http.ResponseWriter) {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = outer.Unwrap()
	}
	// A MaxBytesReader has this effect when its limit is exceeded.
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1))
}

// ClosesAtOnce reports whether [DelayClose] is necessary if a part of r's body is unread.
func ClosesAtOnce(r *http.Request) bool {
	return r.ProtoMajor == 1 && (r.Close || r.Header.Get("Expect") != "")
}
