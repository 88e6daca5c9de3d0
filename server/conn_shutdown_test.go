package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

// After Shutdown, a connection can finish its work. It cannot read any more, but its writes arrive.
func TestShutdownLetsAConnectionFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, l := newServer(t, server.Options{})
		work, hook := make(chan struct{}), make(chan struct{})
		p := newPipes()
		serveConns(t, srv, p, func(c *server.Conn) error {
			c.OnClose(func() error { <-hook; return nil })
			line, err := bufio.NewReader(c).ReadString('\n')
			if err != nil {
				return err
			}
			stopped := make(chan error, 1)
			_ = c.Go("read", func(context.Context) error { stopped <- read(c); return nil })
			require.ErrorIs(t, <-stopped, http.ErrServerClosed)
			require.ErrorIs(t, read(c), http.ErrServerClosed)
			require.NoError(t, c.SetDeadline(time.Time{}))
			require.ErrorIs(t, read(c), http.ErrServerClosed, "a deadline of its own changes nothing")
			<-work
			require.NoError(t, c.Context().Err())
			for range 2 {
				if _, err = io.WriteString(c, line); err != nil {
					return err
				}
			}
			return read(c)
		})
		busy, quiet := p.connect(t), p.connect(t)
		_, err := io.WriteString(busy, "work\n")
		require.NoError(t, err)
		synctest.Wait()
		done := shutdown(t.Context(), srv)
		pending(t, done)
		_, err = p.dial(t.Context(), "", "")
		require.ErrorIs(t, err, net.ErrClosed)
		requireEnd(t, quiet, "")
		close(work)
		requireEnd(t, busy, "work\nwork\n")
		pending(t, done)
		close(hook)
		require.NoError(t, <-done)
		require.Empty(t, l.at(""))
		require.NoError(t, srv.Shutdown(t.Context()), "a second one finds nothing to do")
	})
}

// When Shutdown stops waiting, the remaining connections are cut off. This is not logged as a failure.
func TestConnectionEnds(t *testing.T) {
	impatient := errors.New("no more time")
	for name, tt := range map[string]struct {
		end  func(t *testing.T, srv *server.Server) error
		took time.Duration
	}{
		"Close": {func(_ *testing.T, srv *server.Server) error { return srv.Close() }, 0},
		"an impatient Shutdown": {func(t *testing.T, srv *server.Server) error {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, impatient)
			defer cancel()
			require.ErrorIs(t, srv.Shutdown(ctx), impatient)
			return nil
		}, time.Second},
	} {
		for what, wait := range map[string]func(c *server.Conn) error{
			"a write":    write,
			"a context":  func(c *server.Conn) error { <-c.Context().Done(); return context.Cause(c.Context()) },
			"a property": getMark,
			"a failure":  func(c *server.Conn) error { <-c.Context().Done(); return errSave },
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv, l := newServer(t, server.Options{})
					reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
						Resolve: func(ctx context.Context) (string, error) { <-ctx.Done(); return "", context.Cause(ctx) },
					})
					ended := make(chan error, 1)
					conn := connect(t, srv, func(c *server.Conn) error {
						err := wait(c)
						ended <- err
						<-c.Context().Done()
						return err
					})
					synctest.Wait()
					began := time.Now()
					require.NoError(t, tt.end(t, srv))
					require.Error(t, <-ended)
					require.Equal(t, tt.took, time.Since(began))
					requireEnd(t, conn, "")
					require.NoError(t, srv.Shutdown(t.Context()))
					require.Empty(t, l.at(""))
				})
			})
		}
	}
}

func TestServeAfterTheEnd(t *testing.T) {
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			srv, _ := newServer(t, server.Options{})
			require.NoError(t, end(srv))
			require.NoError(t, end(srv), "a second time does nothing")
			for _, serve := range []func(net.Listener) error{
				srv.Serve, func(l net.Listener) error { return srv.ServeConns(l, nil) },
			} {
				p := newPipes()
				require.ErrorIs(t, serve(p), http.ErrServerClosed)
				_, err := p.Accept()
				require.ErrorIs(t, err, net.ErrClosed)
			}
			require.ErrorIs(t, srv.ListenAndServe("127.0.0.1:0"), http.ErrServerClosed)
		})
	}
}

// slowListener is a listener whose Close takes a second.
type slowListener struct {
	*pipes
	closed *atomic.Bool
}

func (l slowListener) Close() error {
	<-time.After(time.Second)
	l.closed.Store(true)
	return l.pipes.Close()
}

// TestEndOfTheServerClosesListeners checks that the listener of ServeConns is closed when Shutdown or Close returns.
func TestEndOfTheServerClosesListeners(t *testing.T) {
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, _ := newServer(t, server.Options{})
				l := slowListener{newPipes(), new(atomic.Bool)}
				serveConns(t, srv, l, write)
				synctest.Wait()
				require.NoError(t, end(srv))
				require.True(t, l.closed.Load())
			})
		})
	}
}

// Many connections begin and end while the server shuts down. Each is served to its end or never accepted, and
// Shutdown returns after the last one.
func TestShutdownDuringConnects(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	provideMark(srv)
	var running atomic.Int32
	tcp := listenTCP(t)
	serveConns(t, srv, tcp, func(c *server.Conn) error {
		running.Add(1)
		c.OnClose(func() error { running.Add(-1); return nil })
		in := bufio.NewReader(c)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return err
			}
			if err := getMark(c); err != nil {
				return err
			}
			if _, err := io.WriteString(c, line); err != nil {
				return err
			}
		}
	})
	var done <-chan error
	concurrently(50, func(i int) {
		conn, err := net.Dial("tcp", tcp.Addr().String())
		if err != nil {
			return
		}
		defer conn.Close()
		assert.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		in := bufio.NewReader(conn)
		for n := 0; err == nil; n++ {
			if i == 0 && n == 5 {
				done = shutdown(t.Context(), srv)
			}
			if _, err = io.WriteString(conn, "line\n"); err == nil {
				_, err = in.ReadString('\n')
			}
		}
		assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection was not ended")
	})
	require.NoError(t, <-done)
	require.Zero(t, running.Load())
	require.Empty(t, l.at(""))
}

func TestConnsOverTLS(t *testing.T) {
	own := newPair(t, "own")
	cert, err := tls.X509KeyPair(own.cert, own.key)
	require.NoError(t, err)
	conf := &tls.Config{Certificates: []tls.Certificate{cert}}

	t.Run("works", func(t *testing.T) {
		srv, l := newServer(t, server.Options{})
		tcp := listenTCP(t)
		began := make(chan struct{})
		serveConns(t, srv, tls.NewListener(tcp, conf), func(c *server.Conn) error {
			line, err := bufio.NewReader(c).ReadString('\n')
			if err != nil {
				return err
			}
			require.True(t, c.Conn.(interface{ NetConn() net.Conn }).NetConn().(*tls.Conn).ConnectionState().HandshakeComplete)
			close(began)
			require.ErrorIs(t, read(c), http.ErrServerClosed)
			_, err = io.WriteString(c, line)
			return err
		})
		conn := tls.Client(connectTCP(t, tcp), &tls.Config{InsecureSkipVerify: true})
		_, err := io.WriteString(conn, "hello\n")
		require.NoError(t, err)
		<-began
		require.NoError(t, srv.Shutdown(t.Context()))
		requireEnd(t, conn, "hello\n")
		require.Empty(t, l.at(""))
	})
	t.Run("without a word", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv, l := newServer(t, server.Options{IdleTimeout: time.Second})
			p := newPipes()
			serveConns(t, srv, tls.NewListener(p, conf), read)
			began := time.Now()
			requireEnd(t, p.connect(t), "")
			require.Equal(t, time.Second, time.Since(began))
			require.NoError(t, srv.Shutdown(t.Context()))
			require.Empty(t, l.at(""))
		})
	})
	// A TLS close to a peer that reads nothing would take 5 s for each.
	t.Run("closed at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv, _ := newServer(t, server.Options{})
			p := newPipes()
			serveConns(t, srv, tls.NewListener(p, conf), func(c *server.Conn) error {
				err := c.Conn.(interface{ NetConn() net.Conn }).NetConn().(*tls.Conn).HandshakeContext(c.Context())
				<-c.Context().Done()
				return err
			})
			for range 3 {
				conn := tls.Client(p.connect(t), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
				require.NoError(t, conn.Handshake())
			}
			synctest.Wait()
			began := time.Now()
			require.NoError(t, srv.Close())
			require.NoError(t, srv.Shutdown(t.Context()))
			require.Zero(t, time.Since(began))
		})
	})
}
