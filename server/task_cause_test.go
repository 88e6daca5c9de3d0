package server_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/server"
)

// listenItselfTLS serves srv with HTTP/2 on a listener of its own until the test ends.
func listenItselfTLS(tb testing.TB, srv *server.Server) (url string, c *http.Client) {
	tb.Helper()
	f := newPEMFiles(tb, newPair(tb, "127.0.0.1"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	served := make(chan error, 1)
	go func() { served <- srv.ServeTLS(l, f.cert, f.key) }()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	tb.Cleanup(func() {
		transport.CloseIdleConnections()
		require.NoError(tb, srv.Close())
		require.ErrorIs(tb, <-served, http.ErrServerClosed)
	})
	return "https://" + l.Addr().String(), &http.Client{Transport: transport}
}

// A task can tell the end of the handler from a client that is gone.
func TestCauseOfATasksEnd(t *testing.T) {
	for name, c := range map[string]struct {
		major int
		serve func(tb testing.TB, srv *server.Server) (string, *http.Client)
	}{
		"own":           {1, listenItself},
		"own, HTTP/2":   {2, listenItselfTLS},
		"other":         {1, func(tb testing.TB, srv *server.Server) (string, *http.Client) { return protocols["HTTP/1"](tb, srv) }},
		"other, HTTP/2": {2, func(tb testing.TB, srv *server.Server) (string, *http.Client) { return protocols["HTTP/2"](tb, srv) }},
	} {
		t.Run(name, func(t *testing.T) {
			srv, _ := newServer(t, server.Options{})
			causes, begun := make(chan error, 1), make(chan int, 1)
			task := func(req *server.Request) error {
				running := make(chan struct{})
				defer func() { <-running; begun <- req.ProtoMajor }()
				return req.Go("task", func(ctx context.Context) error {
					close(running)
					<-ctx.Done()
					causes <- context.Cause(ctx)
					return nil
				})
			}
			srv.HandleFunc("GET /return", func(_ http.ResponseWriter, req *server.Request) error { return task(req) })
			srv.HandleFunc("GET /panic", func(_ http.ResponseWriter, req *server.Request) error { panic(task(req)) })
			srv.HandleFunc("GET /wait", func(_ http.ResponseWriter, req *server.Request) error {
				err := task(req)
				<-req.Context().Done()
				return err
			})
			url, client := c.serve(t, srv)
			for _, path := range []string{"/return", "/panic"} {
				_, err := request(t, client, http.MethodGet, url+path)
				require.NoError(t, err)
				require.Equal(t, c.major, <-begun)
				require.Equal(t, lazy.ErrClosed, <-causes, path)
			}
			ctx, leave := context.WithCancel(t.Context())
			go func() { <-begun; leave() }()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/wait", nil)
			require.NoError(t, err)
			_, err = client.Do(r)
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, context.Canceled, <-causes)
		})
	}
}

func TestCauseOfAConnectionsTask(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	causes := make(chan error, 1)
	conn := connect(t, srv, func(c *server.Conn) error {
		return c.Go("task", func(ctx context.Context) error {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil
		})
	})
	_, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, lazy.ErrClosed, <-causes)
}
