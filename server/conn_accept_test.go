package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

// failing is a listener. Its first calls of Accept return the errors in errs; a nil error stands for a successful
// call. A failing cannot be the key of a map.
type failing struct {
	*pipes
	errs []error
	next *int
}

func (f failing) Accept() (net.Conn, error) {
	if n := *f.next; n < len(f.errs) {
		*f.next++
		if f.errs[n] != nil {
			return nil, f.errs[n]
		}
	}
	return f.pipes.Accept()
}

// temporary is the error of accept if there are no free file descriptors.
var temporary = &net.OpError{Op: "accept", Err: os.NewSyscallError("accept", syscall.EMFILE)}

func TestAcceptGoesOnAfterATemporaryError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, l := newServer(t, server.Options{})
		p, errs := newPipes(), slices.Repeat([]error{temporary}, 10)
		serveConns(t, srv, failing{p, append(errs, nil, temporary), new(int)}, write)
		began := time.Now()
		requireEnd(t, p.connect(t), "x")
		// The pauses are 5, 10, … 640 ms, and then 1 s each.
		require.Equal(t, 1275*time.Millisecond+2*time.Second, time.Since(began))
		requireEnd(t, p.connect(t), "x")
		require.Equal(t, 1280*time.Millisecond+2*time.Second, time.Since(began), "after a connection, the pauses begin anew")
		require.Len(t, l.at("ERROR"), len(errs)+1)
		require.EqualValues(t, 5*time.Millisecond, l.at("")[0]["in"])
	})
}

func TestShutdownEndsThePauseOfAccept(t *testing.T) {
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, _ := newServer(t, server.Options{})
				served := make(chan error, 1)
				go func() { served <- srv.ServeConns(failing{newPipes(), []error{temporary}, new(int)}, write) }()
				synctest.Wait()
				began := time.Now()
				require.NoError(t, end(srv))
				require.ErrorIs(t, <-served, http.ErrServerClosed)
				require.Zero(t, time.Since(began))
			})
		})
	}
}

// After any other error, ServeConns returns. The connections that it has accepted stay open.
func TestAcceptErrorsEndServeConns(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	p := newPipes()
	served := make(chan error, 1)
	go func() {
		served <- srv.ServeConns(p, func(c *server.Conn) error {
			_ = read(c)
			return write(c)
		})
	}()
	conn := p.connect(t)
	require.NoError(t, p.Close())
	require.ErrorIs(t, <-served, net.ErrClosed)
	_, err := io.WriteString(conn, "x")
	require.NoError(t, err)
	requireEnd(t, conn, "x")

	broken := failing{newPipes(), []error{errSave}, new(int)}
	require.ErrorIs(t, srv.ServeConns(broken, nil), errSave)
	_, err = broken.Accept()
	require.ErrorIs(t, err, net.ErrClosed, "the listener is closed")
	require.NoError(t, srv.Shutdown(t.Context()))
	require.Empty(t, l.at(""))
}

// addressed is a connection whose remote address is the result of addr.
type addressed struct {
	net.Conn
	addr func() net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.addr() }

// A listener for the PROXY protocol reads the address from the connection.
func TestSlowRemoteAddr(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	known := make(chan struct{})
	p := newPipes()
	serveConns(t, srv, p, func(c *server.Conn) error {
		_, err := io.WriteString(c, reqctx.From(c.Context()).RemoteAddr())
		return err
	})
	silent, theirs := net.Pipe()
	p.conns <- addressed{theirs, func() net.Addr { <-known; return &net.UnixAddr{Name: "late"} }}
	requireEnd(t, p.connect(t), "pipe")
	close(known)
	requireEnd(t, silent, "late")

	none, theirs := net.Pipe()
	p.conns <- addressed{theirs, func() net.Addr { return nil }}
	requireEnd(t, none, "unknown")
}

// TestRemoteAddrPanics checks that a panic of RemoteAddr is logged like a panic of the handler.
func TestRemoteAddrPanics(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	p := newPipes()
	serveConns(t, srv, p, write)
	conn, theirs := net.Pipe()
	p.conns <- addressed{theirs, func() net.Addr { panic("boom") }}
	requireEnd(t, conn, "")
	require.NoError(t, srv.Shutdown(t.Context()))
	require.Equal(t, "boom", l.only(t)["panic"])
}

func TestConnPanics(t *testing.T) {
	for name, tt := range map[string]struct {
		timeout time.Duration
		resolve func()
		h       func(c *server.Conn) error
		logged  map[string]any
		stack   string
	}{
		"property": {resolve: explode, h: getMark, logged: map[string]any{"panic": "boom", "property": "mark"}, stack: "explode"},
		"goexit":   {h: func(*server.Conn) error { exit(); return nil }, logged: map[string]any{"panic": lazy.ErrGoexit.Error()}},
		"abort":    {h: func(*server.Conn) error { panic(http.ErrAbortHandler) }},
		"a slice": {
			h: func(*server.Conn) error { panic([]int{1}) }, logged: map[string]any{"panic": []any{1.}}, stack: "TestConnPanics",
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, server.Options{})
			resolving(srv, tt.timeout, func() {
				if tt.resolve != nil {
					tt.resolve()
				}
			})
			var n atomic.Int32
			closed := make(chan struct{})
			p := newPipes()
			serveConns(t, srv, p, func(c *server.Conn) error {
				if n.Add(1) > 1 {
					return write(c)
				}
				c.OnClose(func() error { close(closed); return nil })
				return tt.h(c)
			})
			requireEnd(t, p.connect(t), "")
			<-closed
			requireEnd(t, p.connect(t), "x")
			require.NoError(t, srv.Shutdown(t.Context()))
			if tt.logged == nil {
				require.Empty(t, l.at(""))
				return
			}
			line := l.only(t)
			require.Equal(t, "panic", line["msg"])
			require.Equal(t, "pipe", line["peer"])
			for name, v := range tt.logged {
				require.Equal(t, v, line[name], name)
			}
			require.Contains(t, line["stack"], tt.stack)
			require.Len(t, l.at(""), 1)
		})
	}
}

func getMark(c *server.Conn) error { _, err := mark.Get(c.Context()); return err }

func TestWhichConnErrorsAreLogged(t *testing.T) {
	failed := errors.New("failed")
	after := func(err error) func(c *server.Conn) error { // an error when the connection still works
		return func(*server.Conn) error { return fmt.Errorf("store: %w", err) }
	}
	whole := func(c *server.Conn) error {
		_, err := io.ReadFull(c, make([]byte, 10))
		return fmt.Errorf("message: %w", err)
	}
	for name, tt := range map[string]struct {
		h      func(c *server.Conn) error
		sent   string
		logged string
	}{
		"none":                     {func(*server.Conn) error { return nil }, "", ""},
		"own":                      {after(failed), "", "store: failed"},
		"end":                      {func(c *server.Conn) error { return read(c) }, "", ""},
		"end in the middle":        {whole, "half", ""},
		"closed":                   {func(c *server.Conn) error { c.Close(); return read(c) }, "", ""},
		"a write after the end":    {func(c *server.Conn) error { _ = read(c); return write(c) }, "", ""},
		"a deadline":               {func(c *server.Conn) error { _ = c.SetDeadline(time.Unix(1, 0)); return write(c) }, "", ""},
		"a store's end":            {after(io.EOF), "", "store: EOF"},
		"a store's deadline":       {after(os.ErrDeadlineExceeded), "", "store: i/o timeout"},
		"a store that is too slow": {after(context.DeadlineExceeded), "", "store: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, server.Options{})
			over := make(chan struct{})
			conn := connect(t, srv, func(c *server.Conn) error {
				c.OnClose(func() error { close(over); return nil })
				return tt.h(c)
			})
			if tt.sent != "" {
				_, err := io.WriteString(conn, tt.sent)
				require.NoError(t, err)
			}
			require.NoError(t, conn.Close())
			<-over
			require.NoError(t, srv.Shutdown(t.Context()))
			if tt.logged == "" {
				require.Empty(t, l.at(""))
				return
			}
			line := l.only(t)
			require.Equal(t, "connection failed", line["msg"])
			require.Equal(t, "pipe", line["peer"])
			require.Equal(t, tt.logged, line["error"])
		})
	}
}

// recordTypes is a connection below TLS. It keeps the type of the last TLS record that was written.
type recordTypes struct {
	net.Conn
	last *atomic.Int32
}

func (c recordTypes) Write(p []byte) (int, error) {
	c.last.Store(int32(p[0]))
	return c.Conn.Write(p)
}

// TestConnThatBeginsTLS checks that a handler can replace the connection with a TLS connection. The end of that
// connection is not logged, whichever side ends it. If the handler returns first, the peer gets an alert.
func TestConnThatBeginsTLS(t *testing.T) {
	own := newPair(t, "own")
	cert, err := tls.X509KeyPair(own.cert, own.key)
	require.NoError(t, err)
	for name, last := range map[string]struct {
		ofServer func(c *server.Conn) error
		ofClient func(c *tls.Conn)
		alert    bool
	}{
		"the client ends":  {read, func(c *tls.Conn) { require.NoError(t, c.CloseWrite()) }, false},
		"the handler ends": {write, func(c *tls.Conn) { requireEnd(t, c, "x") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, server.Options{})
			tcp := listenTCP(t)
			sent, over := new(atomic.Int32), make(chan struct{})
			serveConns(t, srv, tcp, func(c *server.Conn) error {
				c.OnClose(func() error { close(over); return nil })
				c.Conn = tls.Server(recordTypes{c.Conn, sent}, &tls.Config{Certificates: []tls.Certificate{cert}})
				if err := read(c); err != nil {
					return err
				}
				return last.ofServer(c)
			})
			conn := tls.Client(connectTCP(t, tcp), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
			_, err := io.WriteString(conn, "x")
			require.NoError(t, err)
			last.ofClient(conn)
			require.NoError(t, conn.NetConn().(*net.TCPConn).CloseWrite())
			<-over
			require.Equal(t, last.alert, sent.Load() == 21)
			require.NoError(t, srv.Shutdown(t.Context()))
			require.Empty(t, l.at(""))
		})
	}
}

// A peer that resets its connection is not the server's failure.
func TestConnResetIsNotLogged(t *testing.T) {
	for name, use := range map[string]func(c *server.Conn) error{
		"read": read,
		"write": func(c *server.Conn) error {
			for {
				if err := write(c); err != nil {
					return err
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, server.Options{})
			began, reset, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			tcp := listenTCP(t)
			serveConns(t, srv, tcp, func(c *server.Conn) error {
				close(began)
				<-reset
				err := use(c)
				ended <- err
				return err
			})
			conn := connectTCP(t, tcp)
			<-began
			require.NoError(t, conn.SetLinger(0))
			require.NoError(t, conn.Close())
			close(reset)
			err := <-ended
			require.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE), "%v", err)
			require.NoError(t, srv.Shutdown(t.Context()))
			require.Empty(t, l.at(""))
		})
	}
}
