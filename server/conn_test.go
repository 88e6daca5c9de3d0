package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
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
		Commit:  func(context.Context, string, http.Header) error { events <- "commit"; return nil },
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

func TestConnSetResolveGo(t *testing.T) {
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
				<-ctx.Done()
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
	srv, l := newServer(t, server.Options{RateLimits: []ratelimit.Policy{policy(t, "peer")}})
	tcp := listenTCP(t)
	serveConns(t, srv, tcp, func(c *server.Conn) error {
		for range 2 {
			_, err := c.RateLimit("peer").Take()
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
	srv, _ := newServer(t, server.Options{RateLimits: []ratelimit.Policy{policy(t, "peer")}})
	errs := make(chan error, 2)
	requireEnd(t, connect(t, srv, func(c *server.Conn) error {
		_, err := c.RateLimit().Take()
		errs <- err
		_, err = c.RateLimit("nobody").Take()
		errs <- err
		return nil
	}), "")
	require.ErrorIs(t, <-errs, ratelimit.ErrNoKey)
	require.ErrorIs(t, <-errs, reqctx.ErrNoProperty)
}

// What needs a request says so, and nothing that is written is lost in silence.
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

// How long a connection may be silent, by the server's timeout or the handler's own.
func TestConnIdleTimeout(t *testing.T) {
	const long = 24 * time.Hour
	for name, tt := range map[string]struct {
		idle time.Duration
		wait func(c *server.Conn) error
		want time.Duration
	}{
		"read":       {0, read, 2 * time.Minute},
		"read, own":  {time.Second, read, time.Second},
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
		"a deadline for writes": {time.Second, func(c *server.Conn) error {
			require.NoError(t, c.SetWriteDeadline(time.Now().Add(time.Minute)))
			return write(c)
		}, time.Minute},
		"a deadline": {time.Second, func(c *server.Conn) error {
			require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
			return errors.Join(read(c), write(c))
		}, time.Minute},
		"a deadline in the past": {time.Minute, func(c *server.Conn) error {
			require.NoError(t, c.SetDeadline(time.Unix(1, 0)))
			return read(c)
		}, 0},
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

// What goes either way keeps a connection from being idle for its reads; a peer that
// takes nothing is not kept by what it sends.
func TestConnThatIsNotIdle(t *testing.T) {
	t.Run("the peer listens", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv, _ := newServer(t, server.Options{IdleTimeout: time.Minute})
			began, took := time.Now(), make(chan time.Duration, 1)
			conn := connect(t, srv, func(c *server.Conn) error {
				_ = c.Go("push", func(context.Context) error {
					for range 10 {
						<-time.After(time.Minute / 2)
						if err := write(c); err != nil {
							return err
						}
					}
					return nil
				})
				err := read(c)
				took <- time.Since(began)
				return err
			})
			requireEnd(t, conn, "xxxxxxxxxx")
			require.Equal(t, 5*time.Minute+time.Minute, <-took)
		})
	})
	t.Run("the peer only talks", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv, _ := newServer(t, server.Options{IdleTimeout: time.Minute})
			began, took := time.Now(), make(chan time.Duration, 1)
			conn := connect(t, srv, func(c *server.Conn) error {
				_ = c.Go("read", func(context.Context) error {
					for {
						if err := read(c); err != nil {
							return nil
						}
					}
				})
				err := write(c)
				took <- time.Since(began)
				return err
			})
			for range 3 {
				<-time.After(25 * time.Second)
				_, _ = io.WriteString(conn, "x")
			}
			require.Equal(t, time.Minute, <-took)
		})
	})
}

func TestConnPanics(t *testing.T) {
	for name, tt := range map[string]struct {
		timeout time.Duration
		resolve func()
		h       server.ConnHandler
		logged  map[string]any
		stack   string
	}{
		"handler":  {h: func(*server.Conn) error { explode(); return nil }, logged: map[string]any{"panic": "boom"}, stack: "explode"},
		"property": {resolve: explode, h: getMark, logged: map[string]any{"panic": "boom", "property": "mark"}, stack: "explode"},
		"property on a goroutine": {
			timeout: time.Hour, resolve: explode, h: getMark, logged: map[string]any{"panic": "boom", "property": "mark"}, stack: "explode",
		},
		"goexit": {h: func(*server.Conn) error { exit(); return nil }, logged: map[string]any{"panic": lazy.ErrGoexit.Error()}},
		"abort":  {h: func(*server.Conn) error { panic(http.ErrAbortHandler) }},
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

func getMark(c *server.Conn) error { _, err := c.Get("mark"); return err }

// A failed clean-up is logged, and the others run.
func TestConnCleanUpsAreLogged(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { return "", nil },
		Close:   func(context.Context, string, error) error { panic("in close") },
	})
	requireEnd(t, connect(t, srv, func(c *server.Conn) error {
		c.OnClose(func() error { return errSave })
		return getMark(c)
	}), "")
	require.NoError(t, srv.Shutdown(t.Context()))
	text, _ := l.only(t)["error"].(string)
	require.Contains(t, text, errSave.Error())
	require.Contains(t, text, "in close")
}

func TestWhichConnErrorsAreLogged(t *testing.T) {
	failed := errors.New("failed")
	after := func(err error) server.ConnHandler { // an error when the connection still works
		return func(*server.Conn) error { return fmt.Errorf("store: %w", err) }
	}
	whole := func(c *server.Conn) error {
		_, err := io.ReadFull(c, make([]byte, 10))
		return fmt.Errorf("message: %w", err)
	}
	for name, tt := range map[string]struct {
		h      server.ConnHandler
		sent   string
		logged string
	}{
		"none":                     {func(*server.Conn) error { return nil }, "", ""},
		"own":                      {after(failed), "", "store: failed"},
		"own, after the end":       {func(c *server.Conn) error { return errors.Join(failed, ignore(read(c))) }, "", "failed"},
		"end":                      {func(c *server.Conn) error { return read(c) }, "", ""},
		"end, wrapped":             {whole, "", ""},
		"end in the middle":        {whole, "half", ""},
		"closed":                   {func(c *server.Conn) error { c.Close(); return read(c) }, "", ""},
		"a write after the end":    {func(c *server.Conn) error { _ = read(c); return write(c) }, "", ""},
		"a deadline":               {func(c *server.Conn) error { _ = c.SetDeadline(time.Unix(1, 0)); return write(c) }, "", ""},
		"a cancelled task":         {func(c *server.Conn) error { _ = read(c); return context.Canceled }, "", ""},
		"a store's end":            {after(io.EOF), "", "store: EOF"},
		"a store's deadline":       {after(os.ErrDeadlineExceeded), "", "store: i/o timeout"},
		"a store's closed one":     {after(net.ErrClosed), "", "store: use of closed network connection"},
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

func ignore(error) error { return nil }

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

// The property of a client that has gone is resolved and closed like any other.
func TestAPeerThatLeavesWhileItsPropertyResolves(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	began, gone := make(chan struct{}), make(chan struct{})
	events := make(chan string, 3)
	reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
		Resolve: func(ctx context.Context) (string, error) {
			close(began)
			<-gone
			events <- "resolved"
			return "v", ctx.Err()
		},
		Close: func(_ context.Context, v string, err error) error {
			events <- fmt.Sprint("close ", v, " ", err)
			return nil
		},
	})
	conn := connect(t, srv, func(c *server.Conn) error {
		v, err := c.Get("mark")
		if err != nil {
			return err
		}
		_, err = io.WriteString(c, v.(string))
		events <- err.Error()
		return err
	})
	<-began
	require.NoError(t, conn.Close())
	close(gone)
	for _, want := range []string{"resolved", io.ErrClosedPipe.Error(), "close v <nil>"} {
		require.Equal(t, want, <-events)
	}
	require.NoError(t, srv.Shutdown(t.Context()))
	require.Empty(t, l.at(""))
}

// A connection finishes what it does: no more is read, but what is written arrives.
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

// Several that wait for one connection all end with it.
func TestShutdownsWaitTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := newServer(t, server.Options{})
		work := make(chan struct{})
		_ = connect(t, srv, func(*server.Conn) error { <-work; return nil })
		synctest.Wait()
		one, two := shutdown(t.Context(), srv), shutdown(t.Context(), srv)
		pending(t, one)
		pending(t, two)
		close(work)
		require.NoError(t, <-one)
		require.NoError(t, <-two)
	})
}

// When the wait is over, what is left is cut off, and nothing of it is a failure.
func TestWhatEndsAConnection(t *testing.T) {
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

func TestServeConnsAfterShutdown(t *testing.T) {
	for name, end := range map[string]func(*server.Server) error{
		"Shutdown": func(srv *server.Server) error { return srv.Shutdown(context.Background()) },
		"Close":    (*server.Server).Close,
	} {
		t.Run(name, func(t *testing.T) {
			srv, _ := newServer(t, server.Options{})
			require.NoError(t, end(srv))
			p := newPipes()
			require.ErrorIs(t, srv.ServeConns(p, nil), http.ErrServerClosed)
			_, err := p.Accept()
			require.ErrorIs(t, err, net.ErrClosed)
		})
	}
}

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

// temporary is what the system says when it has no more files.
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
func TestAnAddressThatTakesTime(t *testing.T) {
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
	// To say farewell to a peer that takes nothing would take 5 s for each.
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

// Many that come and go while the server shuts down: each is served to its end or
// never accepted, and Shutdown returns after the last.
func TestShutdownAmongConnections(t *testing.T) {
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
		in := bufio.NewReader(conn)
		for n := range 1000 {
			if i == 0 && n == 5 {
				done = shutdown(t.Context(), srv)
			}
			if _, err := io.WriteString(conn, "line\n"); err != nil {
				return
			}
			if _, err := in.ReadString('\n'); err != nil {
				return
			}
		}
		t.Error("the connection was not ended")
	})
	require.NoError(t, <-done)
	require.Zero(t, running.Load())
	require.Empty(t, l.at(""))
}

// The last words of a handler reach a client that has sent more than was read.
func TestTheLastWordsArrive(t *testing.T) {
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
