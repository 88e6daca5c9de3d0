package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// serveConns runs h on l until the end of the test.
func serveConns(t *testing.T, srv *server.Server, l net.Listener, h func(c *server.Conn) error) {
	t.Helper()
	serving(t, srv, func() error { return srv.ServeConns(l, h) })
}

// connect serves h on a pipe and returns the client's end.
func connect(t *testing.T, srv *server.Server, h func(c *server.Conn) error) net.Conn {
	t.Helper()
	p := newPipes()
	serveConns(t, srv, p, h)
	return p.connect(t)
}

func connectTCP(t *testing.T, l net.Listener) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// requireEnd checks that the server sends exactly this text and then closes the connection.
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
			again, errAgain := mark.Get(c.Context())
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
			_, err := mark.Get(c.Context())
			require.ErrorIs(t, err, reqctx.ErrNoValue)
			require.NoError(t, mark.Set(c.Context(), "set"))
			v, err := mark.Get(c.Context())
			require.NoError(t, err)
			require.Equal(t, []any{"set", "set"}, []any{v, stored})
			began := time.Now()
			require.NoError(t, reqctx.Resolve(c.Context(), "slow1", "slow2"))
			require.Equal(t, time.Second, time.Since(began))
			require.ErrorIs(t, reqctx.Resolve(c.Context(), "slow1", "nobody"), reqctx.ErrNoProperty)
			require.NoError(t, c.Go("waits", func(ctx context.Context) error {
				<-ctx.Done() // before that of the connection
				require.Equal(t, lazy.ErrClosed, context.Cause(ctx))
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
		_, err := mark.Get(conn.Context())
		for _, err := range []error{err, mark.Set(conn.Context(), "x"), reqctx.Resolve(conn.Context(), "slow1"), conn.Go("late", nil)} {
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

// On a raw connection, a property that needs an HTTP request fails with an error. A write to the session fails, too.
func TestConnHasNoRequest(t *testing.T) {
	peer, header := policy(t, "peer"), policy(t, "header")
	header.Key = ratelimit.ByHeader("X-Api-Key")
	srv, l := newServer(t, server.Options{RateLimits: []*ratelimit.Policy{peer, header}})
	requireEnd(t, connect(t, srv, func(c *server.Conn) error {
		s, errFrom := session.From(c.Context())
		_, errExists := s.Exists()
		_, errParams := reqctx.Get(c.Context(), "params")
		p, errFromParams := params.From(c.Context())
		_, errBody := p.Body()
		for i, err := range []error{
			errFrom, errExists, s.Set("a", 1), s.Destroy(), errParams, errFromParams, errBody, p.DecodeJSON(new(int)), reqctx.Resolve(c.Context(), "session"),
		} {
			if !errors.Is(err, reqctx.ErrNoRequest) {
				t.Error(i, err)
			}
		}
		for _, p := range []*ratelimit.Policy{peer, header} {
			if err := p.Require(c.Context()); !errors.Is(err, ratelimit.ErrNoKey) {
				t.Error(err)
			}
		}
		return nil
	}), "")
	require.NoError(t, srv.Shutdown(t.Context()))
	require.Empty(t, l.at(""))
}

// The last bytes that a handler writes reach a client that has sent more than the handler has read.
func TestLastBytesArrive(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	l := listenTCP(t)
	serveConns(t, srv, l, write)
	for range 50 {
		conn := connectTCP(t, l)
		_, err := conn.Write(make([]byte, 1000))
		require.NoError(t, err)
		requireEnd(t, conn, "x")
	}
}

// TestConnIdleTimeout checks how long a connection may be silent, with the server's timeout or a deadline of the
// handler.
func TestConnIdleTimeout(t *testing.T) {
	const long = 24 * time.Hour
	for name, tt := range map[string]struct {
		idle time.Duration
		wait func(c *server.Conn) error
		want time.Duration
	}{
		"read":       {0, read, 2 * time.Minute},
		"write":      {0, write, 2 * time.Minute},
		"write, own": {time.Second, write, time.Second},
		"both": {time.Second, func(c *server.Conn) error {
			<-time.After(time.Minute) // thinking is not idling
			_ = read(c)
			return write(c)
		}, time.Minute + 2*time.Second},
		"none": {-1, func(c *server.Conn) error {
			time.AfterFunc(long, func() { c.Close() })
			return read(c)
		}, long},
		"a deadline for reads": {time.Second, func(c *server.Conn) error {
			require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
			return read(c)
		}, time.Minute},
		"a deadline": {time.Second, func(c *server.Conn) error {
			require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
			return errors.Join(read(c), write(c))
		}, time.Minute},
		"a deadline for the other": {time.Second, func(c *server.Conn) error {
			_ = read(c) // leaves ours behind
			require.NoError(t, c.SetWriteDeadline(time.Now()))
			time.AfterFunc(long, func() { c.Close() })
			return read(c)
		}, long + time.Second},
		"a deadline during a read": {time.Second, func(c *server.Conn) error {
			time.AfterFunc(time.Second/2, func() { _ = c.SetReadDeadline(time.Now().Add(time.Minute)) })
			return read(c)
		}, time.Minute + time.Second/2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, l := newServer(t, server.Options{IdleTimeout: tt.idle})
				took, ended := make(chan time.Duration, 1), make(chan error, 1)
				_ = connect(t, srv, func(c *server.Conn) error {
					began := time.Now()
					err := tt.wait(c)
					took <- time.Since(began)
					ended <- err
					return err
				})
				require.Equal(t, tt.want, <-took)
				if err := <-ended; tt.want < long {
					require.ErrorIs(t, err, os.ErrDeadlineExceeded)
				}
				require.NoError(t, srv.Shutdown(t.Context()))
				require.Empty(t, l.at(""))
			})
		})
	}
}

func read(c *server.Conn) error { _, err := c.Read(make([]byte, 1)); return err }

func write(c *server.Conn) error { _, err := io.WriteString(c, "x"); return err }

// Traffic in either direction prevents the idle timeout of reads. A peer that does not read loses its connection even
// if it sends bytes.
func TestConnTrafficPreventsIdleTimeout(t *testing.T) {
	for name, tt := range map[string]struct {
		wait, beside func(c *server.Conn) error // beside is called again and again until it fails
		want         time.Duration
	}{
		"the peer listens":    {read, func(c *server.Conn) error { <-time.After(time.Minute / 2); return write(c) }, 6 * time.Minute},
		"the peer only talks": {write, read, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, _ := newServer(t, server.Options{IdleTimeout: time.Minute})
				began, took := time.Now(), make(chan time.Duration, 1)
				conn := connect(t, srv, func(c *server.Conn) error {
					_ = c.Go("beside", func(context.Context) error {
						for n := 0; n < 10 && tt.beside(c) == nil; n++ {
						}
						return nil
					})
					err := tt.wait(c)
					took <- time.Since(began)
					return err
				})
				if name == "the peer listens" {
					requireEnd(t, conn, "xxxxxxxxxx")
				}
				for range 2 {
					<-time.After(25 * time.Second)
					_, _ = io.WriteString(conn, "x")
				}
				require.Equal(t, tt.want, <-took)
			})
		})
	}
}
