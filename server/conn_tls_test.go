package server_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
)

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
			require.True(t, c.Conn.(*tls.Conn).ConnectionState().HandshakeComplete)
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
				err := c.Conn.(*tls.Conn).HandshakeContext(c.Context())
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
