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

// full is a listener of a process that has too many open files.
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

func TestTooManyOpenFilesIsAnError(t *testing.T) {
	for name, server := range map[string]func(*Proxy) *Server{
		"proxy": func(p *Proxy) *Server { return p.Server(Limits{}) },
		"admin": (*Proxy).AdminServer,
	} {
		synctest.Test(t, func(t *testing.T) {
			p, l := &Proxy{}, &logs{}
			p.log = jsonLogger(l)
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
			require.Positive(t, logged[1]["left_out"])
		})
	}
}

func TestLogOfNetHTTP(t *testing.T) {
	l := &logs{}
	log := newServerLog(jsonLogger(l))
	log.Printf("http: TLS handshake error from 192.0.2.1:1: EOF")
	require.Empty(t, l.above(t))
	require.Len(t, l.lines("TLS handshake error"), 1)
	log.Printf("http: panic serving 192.0.2.1:1: boom\ngoroutine 1")
	log.Printf("http2: panic serving 192.0.2.1:1: boom\ngoroutine 1")
	require.Len(t, l.above(t), 2)
}
