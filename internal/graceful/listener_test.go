package graceful

import (
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// pipes is a listener without sockets and deadlines.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
	errs  chan error
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), over: make(chan struct{}), errs: make(chan error, 1)}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case err := <-p.errs:
		return nil, err
	case <-p.over:
		return nil, errors.New("closed")
	}
}

func (p *pipes) Close() error   { close(p.over); return nil } // a second one panics
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func (p *pipes) dial(t *testing.T) *client {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	t.Cleanup(func() { _ = ours.Close() })
	return newClient(t, ours)
}

// endless is a listener whose Accept always returns a connection at once. The client of this connection has gone.
type endless struct {
	*pipes
	mu       sync.Mutex
	deadline time.Time
}

func (e *endless) SetDeadline(t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deadline = t
	return nil
}

func (e *endless) Accept() (net.Conn, error) {
	<-time.After(time.Millisecond)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.deadline.IsZero() && !time.Now().Before(e.deadline) {
		return nil, os.ErrDeadlineExceeded
	}
	ours, theirs := net.Pipe()
	return theirs, ours.Close()
}

// A listener is closed even if connections come all the time.
func TestShutdownWithoutPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(&http.Server{Handler: http.NotFoundHandler()})
		l := &endless{pipes: newPipes()}
		serve(t, s, l, l)
		synctest.Wait()
		began := time.Now()
		require.NoError(t, s.Shutdown(t.Context()))
		require.InDelta(t, maxStopTime, time.Since(began), float64(20*time.Millisecond))
	})
}

// Until a listener is stopped, net/http gets all its errors, even those of deadlines.
func TestErrorsOfAccept(t *testing.T) {
	for _, want := range []error{net.ErrClosed, os.ErrDeadlineExceeded} {
		p := newPipes()
		p.errs <- want
		l := newListener(p, p)
		_, err := l.Accept()
		require.ErrorIs(t, err, want)
		require.NoError(t, l.Close())
		require.NoError(t, l.Close())
	}
	p := newPipes()
	p.errs <- net.ErrClosed
	require.ErrorIs(t, New(&http.Server{}).Serve(p, p), net.ErrClosed)
}
