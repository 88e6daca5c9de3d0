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
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

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
func TestPeerLeavesDuringResolve(t *testing.T) {
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
