package graceful

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// echo returns a handler that answers with the request's body. During a Shutdown, it sends "Connection: close".
func echo(s **Server) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if (*s).Ending() {
			w.Header().Set("Connection", "close")
		}
		_, _ = w.Write(body)
	}
}

// Shutdown serves connections that the kernel has accepted and the program has not.
func TestShutdownServesWaitingConnections(t *testing.T) {
	for _, withTLS := range []bool{false, true} {
		var s *Server
		accepting, release := make(chan struct{}), make(chan struct{})
		first := sync.OnceFunc(func() { close(accepting); <-release })
		config := &http.Server{Handler: echo(&s), ConnContext: func(ctx context.Context, _ net.Conn) context.Context { first(); return ctx }}
		s = New(config)
		s.Window = time.Minute
		base := listen(t)
		l := base
		if withTLS {
			certs := httptest.NewUnstartedServer(nil)
			certs.StartTLS()
			certs.Close()
			l = tls.NewListener(base, certs.TLS)
		}
		serve(t, s, l, base)
		var clients []*client
		for range 20 {
			clients = append(clients, dial(t, base.Addr()))
		}
		<-accepting
		done := stop(t.Context(), s)
		require.Eventually(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.stopping }, 20*time.Second, time.Millisecond)
		close(release)
		ending(t, s)
		for _, c := range clients {
			if withTLS {
				c = newClient(t, tls.Client(c, &tls.Config{InsecureSkipVerify: true}))
			}
			c.send(t, post)
			body, last := c.receive(t)
			require.Equal(t, "body", body)
			require.True(t, last)
			c.ends(t)
		}
		require.NoError(t, <-done)
		_, err := net.Dial("tcp", base.Addr().String())
		require.ErrorContains(t, err, "refused")
	}
}

// During a Shutdown, a request on an idle or new connection is served, and then the connection is closed. Shutdown
// returns when all are closed.
func TestShutdownServesLateRequests(t *testing.T) {
	var s *Server
	asked, answer := make(chan struct{}), make(chan struct{})
	s = New(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			_ = http.NewResponseController(w).Flush() // its header doesn't announce the end
			asked <- struct{}{}
			<-answer
		}
		echo(&s)(w, r)
	})})
	s.Window = time.Minute
	l := listen(t)
	serve(t, s, l, l)
	idle, silent, busy := dial(t, l.Addr()), dial(t, l.Addr()), dial(t, l.Addr())
	idle.send(t, post)
	_, last := idle.receive(t)
	require.False(t, last)
	busy.send(t, strings.Replace(post, "/", "/long", 1))
	<-asked
	done := stop(t.Context(), s)
	ending(t, s)
	close(answer)
	_, last = busy.receive(t)
	require.False(t, last)
	for _, c := range []*client{idle, silent, busy} {
		c.send(t, post)
		body, last := c.receive(t)
		require.Equal(t, "body", body)
		require.True(t, last)
		c.ends(t)
	}
	require.NoError(t, <-done, "it doesn't wait for the whole window")
	require.ErrorIs(t, s.Serve(l, l), http.ErrServerClosed)
}

// Connections without a request are closed after the window, but not while others have requests.
func TestShutdownClosesIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *Server
		answer := make(chan struct{})
		s = New(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/long" {
				<-answer
			}
			echo(&s)(w, r)
		})})
		p := newPipes()
		serve(t, s, p, p)
		idle, silent, half, busy := p.dial(t), p.dial(t), p.dial(t), p.dial(t)
		idle.send(t, post)
		_, _ = idle.receive(t)
		half.send(t, post[:10])
		busy.send(t, strings.Replace(post, "/", "/long", 1))
		synctest.Wait()
		<-time.After(10 * time.Second)
		began := time.Now()
		done := stop(t.Context(), s)
		for _, c := range []*client{idle, silent, half} {
			c.ends(t)
			require.InDelta(t, time.Second, time.Since(began), float64(20*time.Millisecond))
		}
		close(answer)
		body, last := busy.receive(t)
		require.Equal(t, "body", body)
		require.True(t, last)
		require.NoError(t, <-done)
		require.InDelta(t, time.Second, time.Since(began), float64(20*time.Millisecond))
	})
}

// Shutdown returns when its context ends.
func TestShutdownDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		s := New(&http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-answer })})
		p := newPipes()
		serve(t, s, p, p)
		busy := p.dial(t)
		busy.send(t, post)
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.ErrorIs(t, s.Shutdown(ctx), context.DeadlineExceeded)
		require.Equal(t, 10*time.Second, time.Since(began))
		close(answer)
		_, _ = busy.receive(t)
		require.NoError(t, s.Shutdown(t.Context()), "a second one finds nothing to do")
	})
}

// unhashable is a connection that can't be a key of a map.
type unhashable struct {
	net.Conn
	_ []byte
}

// A server with an unhashable connection shuts down, too.
func TestUnhashableConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *Server
		s = New(&http.Server{Handler: echo(&s)})
		p := newPipes()
		serve(t, s, p, p)
		ours, theirs := net.Pipe()
		p.conns <- unhashable{Conn: theirs}
		c := newClient(t, ours)
		c.send(t, post)
		body, _ := c.receive(t)
		require.Equal(t, "body", body)
		require.NoError(t, s.Shutdown(t.Context()))
		c.ends(t)
	})
}
