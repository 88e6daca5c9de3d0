package server_test

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
)

// Every response after Shutdown has begun announces that its connection ends.
func TestShutdownIsAnnounced(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	asked, release := make(chan struct{}), make(chan struct{})
	srv.HandleFunc("GET /busy", func(http.ResponseWriter, *server.Request) error {
		asked <- struct{}{}
		<-release
		return nil
	})
	srv.HandleFunc("GET /empty", func(http.ResponseWriter, *server.Request) error { return nil })
	srv.HandleFunc("GET /denied", func(http.ResponseWriter, *server.Request) error {
		return server.Errorf(http.StatusForbidden, "no")
	})
	srv.HandleFunc("GET /panic", func(http.ResponseWriter, *server.Request) error { panic("here") })
	url, c := listenItself(t, srv)
	get := func(conn net.Conn, path string) answer {
		res, err := exchangeOn(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		return res
	}
	paths := map[string]int{"/empty": 200, "/denied": 403, "/none": 404, "/panic": 500}
	idle := map[string]net.Conn{}
	for _, path := range append(slices.Collect(maps.Keys(paths)), "watch") {
		conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		idle[path] = conn
		require.False(t, get(conn, "/empty").Close)
	}
	busy := make(chan bool, 1)
	go func() {
		res, err := c.Get(url + "/busy")
		busy <- err == nil && res.Close && res.Body.Close() == nil
	}()
	<-asked
	done := shutdown(t.Context(), srv)
	for !get(idle["watch"], "/empty").Close {
	}
	for path, want := range paths {
		res := get(idle[path], path)
		require.Equal(t, want, res.StatusCode)
		require.True(t, res.Close, path)
	}
	close(release)
	require.True(t, <-busy)
	require.NoError(t, <-done)
	require.Len(t, l.at("ERROR"), 1, "the panic")
}
