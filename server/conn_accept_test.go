package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

// failing is a listener whose first Accepts fail, but for those with nil. It cannot be the key of a map.
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

// temporary is the system's error when it has no more file descriptors.
var temporary = &net.OpError{Op: "accept", Err: os.NewSyscallError("accept", syscall.EMFILE)}

func TestAcceptGoesOnAfterATemporaryError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, l := newServer(t, server.Options{})
		p, errs := newPipes(), make([]error, 10)
		for i := range errs {
			errs[i] = temporary
		}
		serveConns(t, srv, failing{p, errs, new(int)}, write)
		began := time.Now()
		requireEnd(t, p.connect(t), "x")
		// 5, 10 … 640 ms, and then a second each
		require.Equal(t, 1275*time.Millisecond+2*time.Second, time.Since(began))
		require.Len(t, l.at("ERROR"), len(errs))
		require.EqualValues(t, 5*time.Millisecond, l.at("")[0]["in"])
	})
}

// After a connection, the pauses begin anew.
func TestAcceptRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := newServer(t, server.Options{})
		p := newPipes()
		serveConns(t, srv, failing{p, []error{temporary, temporary, nil, temporary}, new(int)}, write)
		requireEnd(t, p.connect(t), "x")
		began := time.Now()
		requireEnd(t, p.connect(t), "x")
		require.Equal(t, 5*time.Millisecond, time.Since(began))
	})
}

func TestShutdownEndsThePauseOfAccept(t *testing.T) {
	for name, end := range map[string]func(*server.Server) error{
		"Shutdown": func(srv *server.Server) error { return srv.Shutdown(context.Background()) },
		"Close":    (*server.Server).Close,
	} {
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

// After another error ServeConns returns; the connections it has accepted live on.
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

// addressed is a connection with an address of its own making.
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
