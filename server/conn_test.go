package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// serveConns runs h on l until the end of the test.
func serveConns(t *testing.T, srv *server.Server, l net.Listener, h server.ConnHandler) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- srv.ServeConns(l, h) }()
	t.Cleanup(func() {
		require.NoError(t, srv.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
}

// connect serves h on a pipe and returns the client's end.
func connect(t *testing.T, srv *server.Server, h server.ConnHandler) net.Conn {
	t.Helper()
	p := newPipes()
	serveConns(t, srv, p, h)
	return p.connect(t)
}

func (p *pipes) connect(t *testing.T) net.Conn {
	t.Helper()
	conn, err := p.dial(t.Context(), "", "")
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// listenTCP is for what pipes don't have: addresses, buffers, resets.
func listenTCP(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

func connectTCP(t *testing.T, l net.Listener) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// requireEnd checks that the server closes the connection, after it sent this.
func requireEnd(t *testing.T, conn net.Conn, sent string) {
	t.Helper()
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, sent, string(got))
}

func TestConnPropertiesResolveOncePerConnection(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	var resolved atomic.Int32
	events := make(chan string, 10)
	reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { return fmt.Sprint(resolved.Add(1)), nil },
		Commit:  func(context.Context, string, int, http.Header) error { events <- "commit"; return nil },
		Close: func(ctx context.Context, v string, _ error) error {
			events <- "close " + v
			return ctx.Err()
		},
	})
	p := newPipes()
	serveConns(t, srv, p, func(c *server.Conn) error {
		concurrently(20, func(int) {
			v, err := mark.Get(c.Context())
			again, errAgain := c.Get("mark")
			if err != nil || errAgain != nil || again != v {
				t.Error(v, err, again, errAgain)
			}
		})
		c.OnClose(func() error {
			_, err := c.Write([]byte("late"))
			events <- "hook " + err.Error()
			return nil
		})
		_, err := fmt.Fprint(c, c.Context().Value(server.Conn{}), mark.Name())
		events <- "handler"
		return err
	})
	for _, n := range []string{"1", "2"} {
		requireEnd(t, p.connect(t), "<nil>mark")
		for _, want := range []string{"handler", "hook io: read/write on closed pipe", "close " + n} {
			require.Equal(t, want, <-events)
		}
	}
	require.NoError(t, srv.Shutdown(t.Context()))
	require.Empty(t, events, "nothing is committed")
	require.Empty(t, l.at(""))
}

func TestConnProperties(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, l := newServer(t, server.Options{})
		slow := func(context.Context) (int, error) { <-time.After(time.Second); return 1, nil }
		reqctx.Provide(srv.Registry(), reqctx.NewKey[int]("slow1"), reqctx.Prop[int]{Resolve: slow})
		reqctx.Provide(srv.Registry(), reqctx.NewKey[int]("slow2"), reqctx.Prop[int]{Resolve: slow})
		stored := ""
		reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
			Store: func(_ context.Context, v string) error { stored = v; return nil },
		})
		var conn *server.Conn
		cause, failed := make(chan error, 1), errors.New("failed")
		connected := connect(t, srv, func(c *server.Conn) error {
			conn = c
			_, err := c.Get("mark")
			require.ErrorIs(t, err, reqctx.ErrNoValue)
			require.NoError(t, c.Set("mark", "set"))
			v, err := c.Get("mark")
			require.NoError(t, err)
			require.Equal(t, []any{"set", "set"}, []any{v, stored})
			require.ErrorIs(t, c.Set("mark", 1), reqctx.ErrType)
			began := time.Now()
			require.NoError(t, c.Resolve("slow1", "slow2"))
			require.Equal(t, time.Second, time.Since(began))
			require.ErrorIs(t, c.Resolve("slow1", "nobody"), reqctx.ErrNoProperty)
			require.NoError(t, c.Go("waits", func(ctx context.Context) error {
				<-ctx.Done() // before that of the connection
				<-c.Context().Done()
				cause <- context.Cause(c.Context())
				return ctx.Err()
			}))
			return c.Go("audit", func(context.Context) error { return failed })
		})
		requireEnd(t, connected, "")
		require.ErrorIs(t, <-cause, reqctx.ErrFinished)
		require.NoError(t, srv.Shutdown(t.Context()))
		require.Contains(t, l.only(t)["error"], `task "audit": failed`)
		_, err := conn.Get("mark")
		for _, err := range []error{err, conn.Set("mark", "x"), conn.Resolve("slow1"), conn.Go("late", nil)} {
			require.ErrorIs(t, err, reqctx.ErrFinished)
		}
		late := false
		conn.OnClose(func() error { late = true; return nil })
		require.True(t, late)
	})
}

func TestConnRateLimitByPeer(t *testing.T) {
	peer := policy(t, "peer")
	srv, l := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{peer}})
	tcp := listenTCP(t)
	serveConns(t, srv, tcp, func(c *server.Conn) error {
		for range 2 {
			_, err := peer.Take(c.Context())
			require.NoError(t, err)
		}
		r, err := c.RateLimit().Take()
		require.NoError(t, err)
		_, err = fmt.Fprint(c, r.Allowed, r.Remaining)
		return err
	})
	for _, want := range []string{"true 2", "true 1", "true 0", "false 0"} {
		requireEnd(t, connectTCP(t, tcp), want)
	}
	require.Empty(t, l.at(""))
}

func TestConnRateLimitWithoutAddress(t *testing.T) {
	srv, _ := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{policy(t, "peer")}})
	errs := make(chan error, 2)
	requireEnd(t, connect(t, srv, func(c *server.Conn) error {
		_, err := c.RateLimit().Take()
		errs <- err
		_, err = policy(t, "nobody").Take(c.Context())
		errs <- err
		return nil
	}), "")
	require.ErrorIs(t, <-errs, ratelimit.ErrNoKey)
	require.ErrorIs(t, <-errs, reqctx.ErrNoProperty)
}

// A property that needs a request fails with an error, and no write is lost silently.
func TestConnHasNoSessionAndNoParams(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	cart := session.NewField[int]("cart")
	requireEnd(t, connect(t, srv, func(c *server.Conn) error {
		_, errSession := c.Get("session")
		s, errFrom := session.From(c.Context())
		_, errGet := s.Get("a")
		_, errExists := s.Exists()
		_, errField := cart.Get(c.Context())
		_, errParams := c.Get("params")
		p, errFromParams := params.From(c.Context())
		_, errString := p.String("a")
		_, errPath := p.Path().String("a")
		_, errBody := p.Body()
		_, errJSON := params.JSON[int](c.Context())
		for i, err := range []error{
			errSession, errFrom, errGet, errExists, errField, s.Set("a", 1), s.Delete("a"), s.Renew(), s.Destroy(), cart.Set(c.Context(), 1),
			errParams, errFromParams, errString, errPath, errBody, errJSON, p.DecodeJSON(new(int)), c.Resolve("session"),
		} {
			if !errors.Is(err, reqctx.ErrNoRequest) {
				t.Error(i, err)
			}
		}
		return nil
	}), "")
	require.NoError(t, srv.Shutdown(t.Context()))
	require.Empty(t, l.at(""))
}

// The last words of a handler reach a client that has sent more than was read.
func TestLastBytesArrive(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() {
		served <- srv.ServeConns(l, func(c *server.Conn) error {
			_, err := io.WriteString(c, "no")
			return err
		})
	}()
	for range 50 {
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		_, err = conn.Write(make([]byte, 1000))
		require.NoError(t, err)
		said, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Equal(t, "no", string(said))
		require.NoError(t, conn.Close())
	}
	require.NoError(t, srv.Shutdown(t.Context()))
	require.ErrorIs(t, <-served, http.ErrServerClosed)
}
