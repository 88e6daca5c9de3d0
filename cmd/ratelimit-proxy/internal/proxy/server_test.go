package proxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

// stop calls Shutdown in a goroutine and waits until responses announce the stop. The channel receives the result of
// Shutdown.
func (r *running) stop(tb testing.TB) <-chan error {
	stopped := make(chan error, 1)
	go func() { stopped <- r.server.Shutdown(context.WithoutCancel(tb.Context())) }()
	require.Eventually(tb, r.server.graceful.Ending, 20*time.Second, time.Millisecond)
	return stopped
}

// TestStopIsAnnouncedToIdleConnections checks that requests after the beginning of a stop get a response with
// Connection: close. Their connections were idle, busy or new before.
func TestStopIsAnnouncedToIdleConnections(t *testing.T) {
	asked, answer := make(chan struct{}, 1), make(chan struct{})
	p := run(t, limited(t, behind(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			asked <- struct{}{}
			select {
			case <-answer:
			case <-r.Context().Done():
			}
		}
	}).URL, "2/h"))
	p.server.graceful.Window = time.Minute
	const request = " HTTP/1.1\r\nHost: a\r\n\r\n"
	idle, denied, busy, late := p.upload(t, "GET /"+request), p.upload(t, ""), p.upload(t, ""), p.upload(t, "")
	require.False(t, idle.answer(t).Close)
	busy.send(t, "GET /slow"+request)
	<-asked
	denied.send(t, "GET /"+request)
	require.Equal(t, 429, denied.answer(t).StatusCode)

	stopped := p.stop(t)
	late.send(t, "GET /"+request)
	idle.send(t, "GET /"+request)
	denied.send(t, "GET /status/x"+request)
	close(answer)
	for name, client := range map[string]*uploading{"idle": idle, "denied": denied, "busy": busy, "late": late} {
		require.True(t, client.answer(t).Close, name)
		client.ends(t)
	}
	require.NoError(t, <-stopped, "as soon as there is no connection")
}

// TestStopEndsBusyHTTP2Connections checks that a stop ends HTTP/2 connections that always have a request, and that no
// request is lost.
func TestStopEndsBusyHTTP2Connections(t *testing.T) {
	p := overTLS(t, limited(t, behind(t, nil).URL, "1000000/h"))
	ended := make(chan error, 1)
	p.get(t, "/")
	go func() {
		for {
			res, err := p.client.Get(p.url)
			if err != nil {
				ended <- err
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
	}()
	require.NoError(t, <-p.stop(t))
	require.ErrorIs(t, <-ended, syscall.ECONNREFUSED)
}

// TestSilentConnectionsDoNotDelayStop checks that connections without a complete request don't delay a stop.
func TestSilentConnectionsDoNotDelayStop(t *testing.T) {
	t.Parallel()
	certs := newCertificates(t)
	up := behind(t, nil)
	proxied := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for name, c := range map[string]struct {
		listener config.Listener
		sends    string
	}{
		"plain":                     {config.Listener{}, ""},
		"half a header":             {config.Listener{}, "GET / HT"},
		"TLS":                       {config.Listener{Cert: certs.cert, Key: certs.key}, ""},
		"half a handshake":          {config.Listener{Cert: certs.cert, Key: certs.key}, "\x16\x03\x01"},
		"PROXY protocol":            {config.Listener{ProxyProtocol: proxied}, ""},
		"half of a PROXY header":    {config.Listener{ProxyProtocol: proxied}, "PROX"},
		"PROXY protocol, then TLS":  {config.Listener{ProxyProtocol: proxied, Cert: certs.cert, Key: certs.key}, ""},
		"PROXY protocol, then none": {config.Listener{ProxyProtocol: proxied}, "PROXY UNKNOWN\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := limited(t, up.URL, "10/60s")
			c.listener.Address = "127.0.0.1:0"
			conf.Listen = []config.Listener{c.listener}
			p := run(t, conf)
			conn, err := net.Dial("tcp", p.addr)
			require.NoError(t, err)
			defer conn.Close()
			_, err = io.WriteString(conn, c.sends)
			require.NoError(t, err)
			began := time.Now()
			require.NoError(t, p.server.Shutdown(context.Background()))
			require.Less(t, time.Since(began), 4*time.Second, "net/http waits for five seconds")
			require.Empty(t, p.log.above(t), "a stop is nothing to warn of")
		})
	}
}

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

// TestLogOfNetHTTP checks that errors of clients are logged at debug, and a panic as an error.
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
