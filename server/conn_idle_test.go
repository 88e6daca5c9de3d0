package server_test

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
)

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
func TestConnTrafficPreventsIdleTimeout(t *testing.T) {
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
