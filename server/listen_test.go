package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
)

// shutdown calls Shutdown on another goroutine and returns a channel that gets its result.
func shutdown(ctx context.Context, srv *server.Server) <-chan error {
	done := make(chan error, 1)
	go func() { done <- srv.Shutdown(ctx) }()
	return done
}

// pending waits until all goroutines of the synctest bubble are blocked, and checks that the Shutdown has not
// returned.
func pending(t *testing.T, done <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		require.Failf(t, "Shutdown did not wait", "%v", err)
	default:
	}
}

func TestShutdownWaitsForRequestsTasksAndCleanUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, l := newServer(t, server.Options{})
		handler, task, hook := make(chan struct{}), make(chan struct{}), make(chan struct{})
		srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
			if err := req.Go("task", func(context.Context) error { <-task; return nil }); err != nil {
				return err
			}
			req.OnClose(func() error { <-hook; return nil })
			<-handler
			return writeText(w, "body")
		})
		_, c := serve(t, srv)
		got := make(chan string, 1)
		go func() {
			res, err := request(t, c, "GET", "http://pipe/")
			got <- res.body
			if err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		done := shutdown(t.Context(), srv)
		pending(t, done)
		close(handler)
		require.Equal(t, "body", <-got)
		pending(t, done)
		close(task)
		pending(t, done)
		close(hook)
		require.NoError(t, <-done)
		require.Empty(t, l.at(""))
	})
}

// Shutdown cancels the requests for which it stops waiting. It also waits for a clean-up that never ends, until its
// ctx ends.
func TestShutdownGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := newServer(t, server.Options{})
		ended, hook := make(chan error, 1), make(chan struct{})
		srv.HandleFunc("GET /cleans-up", func(_ http.ResponseWriter, req *server.Request) error {
			req.OnClose(func() error { <-hook; return nil })
			return nil
		})
		srv.HandleFunc("GET /waits", func(_ http.ResponseWriter, req *server.Request) error {
			<-req.Context().Done()
			ended <- req.Context().Err()
			return context.Cause(req.Context())
		})
		_, c := serve(t, srv)
		_, err := request(t, c, "GET", "http://pipe/cleans-up")
		require.NoError(t, err)
		status := make(chan int, 1)
		go func() {
			res, _ := request(t, c, "GET", "http://pipe/waits")
			status <- res.StatusCode
		}()
		synctest.Wait()
		impatient := errors.New("no more time")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute/2, impatient)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, srv.Shutdown(ctx), impatient)
		require.WithinDuration(t, began.Add(time.Minute/2), time.Now(), 0)
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Equal(t, 503, <-status)
		require.ErrorIs(t, srv.Shutdown(ctx), impatient, "it waits for the clean-up")
		done := shutdown(t.Context(), srv)
		pending(t, done)
		close(hook)
		require.NoError(t, <-done)
	})
}

// The client has the whole response while a clean-up still runs, and its connection serves the next request.
func TestCleanUpsDoNotDelayTheResponse(t *testing.T) {
	for name, end := range map[string]func(http.ResponseWriter) error{
		"body":  func(w http.ResponseWriter) error { return writeText(w, "body") },
		"panic": func(http.ResponseWriter) error { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			srv, _ := newServer(t, server.Options{})
			hook := make(chan struct{})
			provide(srv, nil, func() error { <-hook; return nil })
			srv.HandleFunc("GET /", marked(func(w http.ResponseWriter, _ *server.Request) error { return end(w) }))
			url, c := listenItself(t, srv)
			for range 2 {
				_, err := request(t, c, "GET", url)
				require.NoError(t, err)
			}
			c.CloseIdleConnections()
			done := shutdown(t.Context(), srv)
			close(hook)
			require.NoError(t, <-done)
		})
	}
}

// A server within another http.Server still works after its own Shutdown. It then finishes each request before
// ServeHTTP returns.
func TestRequestsAfterShutdownAreCleanedUpAtOnce(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	closed := false
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		req.OnClose(func() error { closed = true; return nil })
		return nil
	})
	require.NoError(t, srv.Shutdown(t.Context()))
	require.Equal(t, 200, ask(srv, "GET", "/").StatusCode)
	require.True(t, closed)
}

// Shutdown doesn't wait for a hijacked connection, but ends its request.
func TestHijackedRequestsAreCancelled(t *testing.T) {
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			srv, _ := newServer(t, server.Options{})
			began, ended := make(chan struct{}), make(chan struct{})
			srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					return err
				}
				defer conn.Close()
				close(began)
				<-req.Context().Done()
				close(ended)
				return nil
			})
			url, _ := listenItself(t, srv)
			begin(t, url, get)
			<-began
			require.NoError(t, end(srv))
			<-ended
		})
	}
}

func TestPortInUseIsAClearError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	srv, _ := newServer(t, server.Options{})
	err = srv.ListenAndServe(l.Addr().String())
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.ErrorContains(t, err, l.Addr().String())
	require.True(t, strings.HasPrefix(err.Error(), "server: "), err)
	require.ErrorContains(t, srv.ListenAndServe("nonsense"), "nonsense")
}

// TestTimeouts checks how long the server waits for clients that stop at different points.
func TestTimeouts(t *testing.T) {
	const long = 24 * time.Hour
	header := "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n"
	for name, tt := range map[string]struct {
		send    string
		answers bool // one response comes before the wait
		o       server.Options
		want    time.Duration
	}{
		"in the header":          {"POST", false, server.Options{}, 10 * time.Second},
		"in the header, own":     {"POST", false, server.Options{ReadHeaderTimeout: time.Second}, time.Second},
		"in the header, none":    {"POST", false, server.Options{ReadHeaderTimeout: -1}, long},
		"in the body":            {header, false, server.Options{}, time.Minute},
		"in the body, own":       {header, false, server.Options{ReadTimeout: 2 * time.Second, WriteTimeout: time.Hour}, 2 * time.Second},
		"in the body, none":      {header, false, server.Options{ReadTimeout: -1}, long},
		"between requests":       {header + "x", true, server.Options{}, 2 * time.Minute},
		"between requests, own":  {header + "x", true, server.Options{IdleTimeout: time.Second}, time.Second},
		"between requests, none": {header + "x", true, server.Options{IdleTimeout: -1}, long},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, _ := newServer(t, tt.o)
				srv.HandleFunc("POST /", func(_ http.ResponseWriter, req *server.Request) error {
					if _, err := io.ReadAll(req.Body); err != nil {
						return http.ErrAbortHandler
					}
					return nil
				})
				p, _ := serve(t, srv)
				conn, err := p.dial(t.Context(), "", "")
				require.NoError(t, err)
				defer conn.Close()
				require.NoError(t, conn.SetDeadline(time.Now().Add(long)))
				_, err = io.WriteString(conn, tt.send)
				require.NoError(t, err)
				in := bufio.NewReader(conn)
				if tt.answers {
					res, err := http.ReadResponse(in, nil)
					require.NoError(t, err)
					require.NoError(t, res.Body.Close())
				}
				began := time.Now()
				_, err = in.ReadByte()
				require.Equal(t, tt.want, time.Since(began))
				require.Equal(t, tt.want == long, errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
				_, _ = io.Copy(io.Discard, in)
			})
		})
	}
}

func TestWriteTimeout(t *testing.T) {
	for name, tt := range map[string]struct{ timeout, own, want time.Duration }{
		"default":             {0, 0, time.Minute},
		"own":                 {time.Second, 0, time.Second},
		"none":                {-1, 0, 24 * time.Hour}, // the client ends the wait
		"the handler's":       {0, 5 * time.Second, 5 * time.Second},
		"the handler's, long": {0, time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, _ := newServer(t, server.Options{WriteTimeout: tt.timeout})
				failed := make(chan time.Duration, 1)
				srv.HandleFunc("GET /", func(w http.ResponseWriter, _ *server.Request) error {
					began := time.Now()
					if tt.own > 0 {
						require.NoError(t, http.NewResponseController(w).SetWriteDeadline(began.Add(tt.own)))
					}
					_, _ = w.Write(download)
					failed <- time.Since(began)
					return http.ErrAbortHandler
				})
				p, _ := serve(t, srv)
				conn := p.begin(t, get)
				time.AfterFunc(24*time.Hour, func() { conn.Close() })
				require.Equal(t, tt.want, <-failed)
				require.NoError(t, conn.Close())
			})
		})
	}
}

func TestLargeHeaderIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		max, size, want int
	}{
		"default": {0, 63 << 10, 200}, "default, more": {0, 70 << 10, 431}, "own": {1 << 10, 8 << 10, 431},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, _ := newServer(t, server.Options{MaxHeaderBytes: tt.max})
				srv.HandleFunc("GET /", func(http.ResponseWriter, *server.Request) error { return nil })
				_, c := serve(t, srv)
				req, err := http.NewRequestWithContext(t.Context(), "GET", "http://pipe/", nil)
				require.NoError(t, err)
				req.Header.Set("X-Large", strings.Repeat("x", tt.size))
				res, err := c.Do(req)
				require.NoError(t, err)
				require.NoError(t, res.Body.Close())
				require.Equal(t, tt.want, res.StatusCode)
				<-time.After(time.Second) // net/http lingers on a connection that it refuses
			})
		})
	}
}

// runUntil runs srv on pipes until end is called.
func runUntil(t *testing.T, srv *server.Server) (c *http.Client, end func(), ran <-chan error) {
	p := newPipes()
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- srv.RunUntil(ctx, func() error { return srv.Serve(p) }) }()
	return &http.Client{Transport: &http.Transport{DialContext: p.dial}}, end, done
}

func TestRunUntilCancelsRequestsAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := newServer(t, server.Options{ShutdownTimeout: 3 * time.Second})
		srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
			<-req.Context().Done()
			return context.Cause(req.Context())
		})
		c, end, ran := runUntil(t, srv)
		defer c.CloseIdleConnections()
		go func() { _, _ = request(t, c, "GET", "http://pipe/") }()
		synctest.Wait()
		began := time.Now()
		end()
		require.EqualError(t, <-ran, "server: requests were cancelled 3s after the shutdown began")
		require.WithinDuration(t, began.Add(3*time.Second), time.Now(), 0)
	})
}

func TestRunUntilReturnsTheErrorOfServing(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	broken := errors.New("broken")
	require.ErrorIs(t, srv.RunUntil(t.Context(), func() error { return broken }), broken)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, srv.RunUntil(ended, func() error { return srv.ListenAndServe("127.0.0.1:0") }))
}

// After the beginning of a Shutdown, every response says that its connection is going to end.
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
