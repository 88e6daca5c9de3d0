package proxy

import (
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// full is a listener whose Accept fails with EMFILE.
type full struct{ closed chan struct{} }

func (l full) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
}

func (l full) Close() error {
	close(l.closed)
	return nil
}

func (l full) Addr() net.Addr { return &net.TCPAddr{} }

func TestTooManyOpenFilesIsLogged(t *testing.T) {
	for name, server := range map[string]func(*Proxy) *Server{
		"proxy": (*Proxy).Server,
		"admin": (*Proxy).AdminServer,
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &logs{}
			p, err := New(limited(t, "http://127.0.0.1:1", "1/s"), jsonLogger(l))
			require.NoError(t, err)
			defer p.Close()
			s := server(p)
			served := make(chan error, 1)
			go func() { served <- s.Serve(full{make(chan struct{})}) }()
			<-time.After(25 * time.Second)
			require.NoError(t, s.Close())
			require.ErrorIs(t, <-served, http.ErrServerClosed)
			logged := l.above(t)
			require.Len(t, logged, 3, "%s: one in ten seconds", name)
			for _, line := range logged {
				require.Equal(t, "ERROR", line["level"])
				require.Contains(t, line["error"], "too many open files")
			}
			require.Positive(t, logged[1]["skipped"])
		})
	}
}

// Errors of clients are logged at debug, and a panic as an error.
func TestLogOfNetHTTP(t *testing.T) {
	p := overTLS(t, limited(t, behind(t, nil).URL, "1/s"))
	conn, err := net.Dial("tcp", p.addr)
	require.NoError(t, err)
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(p.log.lines("TLS handshake error")) == 1 }, 20*time.Second, time.Millisecond)
	require.NoError(t, conn.Close())
	require.Empty(t, p.log.above(t))
	for _, value := range []any{"boom", http.ErrAbortHandler} {
		h := p.server.logPanics(func(http.ResponseWriter, *http.Request) { panic(value) })
		require.PanicsWithValue(t, http.ErrAbortHandler, func() { h.ServeHTTP(nil, nil) })
	}
	logged := p.log.above(t)
	require.Len(t, logged, 1)
	require.Equal(t, "boom", logged[0]["value"])
}
