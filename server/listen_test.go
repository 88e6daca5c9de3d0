package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

// shutdown begins a Shutdown; the channel gets what it returns.
func shutdown(ctx context.Context, srv *server.Server) <-chan error {
	done := make(chan error, 1)
	go func() { done <- srv.Shutdown(ctx) }()
	return done
}

// pending checks, in a bubble, that all is quiet and the Shutdown still waits.
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
			_, err := io.WriteString(w, "body")
			return err
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

func TestShutdownCancelsWhatItDoesNotWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := newServer(t, server.Options{})
		ended := make(chan error, 1)
		srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
			<-req.Context().Done()
			ended <- req.Context().Err()
			return context.Cause(req.Context())
		})
		_, c := serve(t, srv)
		status := make(chan int, 1)
		go func() {
			res, err := request(t, c, "GET", "http://pipe/")
			if err != nil {
				t.Error(err)
			}
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
	})
}

// A clean-up that never ends does not hold up a Shutdown for longer than its ctx.
func TestShutdownGivesUpOnACleanUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := newServer(t, server.Options{})
		hook := make(chan struct{})
		srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
			req.OnClose(func() error { <-hook; return nil })
			return nil
		})
		_, c := serve(t, srv)
		_, err := request(t, c, "GET", "http://pipe/")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, srv.Shutdown(ctx), context.DeadlineExceeded)
		done := shutdown(t.Context(), srv)
		pending(t, done)
		close(hook)
		require.NoError(t, <-done)
	})
}

// The client has the whole response while a clean-up still runs, and its
// connection serves the next request.
func TestCleanUpsDoNotDelayTheResponse(t *testing.T) {
	for name, end := range map[string]func(http.ResponseWriter) error{
		"body":  func(w http.ResponseWriter) error { _, err := io.WriteString(w, "body"); return err },
		"empty": func(http.ResponseWriter) error { return nil },
		"error": func(http.ResponseWriter) error { return server.Errorf(404, "body") },
		"panic": func(http.ResponseWriter) error { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			srv, _ := newServer(t, server.Options{})
			hook := make(chan struct{})
			reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
				Resolve: func(context.Context) (string, error) { return "", nil },
				Close:   func(context.Context, string, error) error { <-hook; return nil },
			})
			srv.HandleFunc("GET /", marked(func(w http.ResponseWriter, _ *server.Request) error { return end(w) }))
			url, c := listenItself(t, srv)
			for range 2 {
				_, err := request(t, c, "GET", url)
				require.NoError(t, err)
			}
			done := shutdown(t.Context(), srv)
			close(hook)
			require.NoError(t, <-done)
		})
	}
}

// A client that goes away ends the request's context, and the clean-ups, whose
// own context goes on, come after the handler and the tasks.
func TestDisconnectCancelsAndCleansUp(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	order := make(chan string, 3)
	began := make(chan struct{})
	reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { return "", nil },
		Close:   func(ctx context.Context, _ string, _ error) error { order <- "close"; return ctx.Err() },
	})
	srv.HandleFunc("GET /", marked(func(_ http.ResponseWriter, req *server.Request) error {
		taskOver := make(chan struct{})
		_ = req.Go("task", func(ctx context.Context) error {
			defer close(taskOver)
			<-ctx.Done()
			order <- "task"
			return ctx.Err()
		})
		close(began)
		<-taskOver
		order <- "handler"
		return req.Context().Err()
	}))
	url, c := listen(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	require.NoError(t, err)
	_, err = c.Do(req)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"task", "handler", "close"}, []string{<-order, <-order, <-order})
	require.NoError(t, srv.Shutdown(t.Context()))
	require.Empty(t, l.at("ERROR"))
}

// Tasks end with the handler; what they return then is no failure.
func TestTasksAreCancelledWhenTheHandlerReturns(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	cause := make(chan error, 1)
	var late func(string, func(context.Context) error) error
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		late = req.Go
		return req.Go("task", func(ctx context.Context) error {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return ctx.Err()
		})
	})
	ask(srv, "GET", "/")
	require.ErrorIs(t, <-cause, lazy.ErrClosed)
	require.NoError(t, srv.Shutdown(t.Context()))
	require.ErrorIs(t, late("late", nil), reqctx.ErrFinished)
	require.Empty(t, l.at(""))
}

func TestFailedTaskIsLogged(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		return req.Go("audit", func(context.Context) error { return errSave })
	})
	require.Equal(t, 200, ask(srv, "GET", "/").StatusCode)
	require.NoError(t, srv.Shutdown(t.Context()))
	require.Contains(t, l.only(t)["error"], `task "audit": `+errSave.Error())
}

// A server that is mounted elsewhere goes on after its Shutdown, and its requests
// are cleaned up before they return.
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

func TestServeAfterShutdown(t *testing.T) {
	for name, end := range map[string]func(*server.Server) error{
		"Shutdown": func(srv *server.Server) error { return srv.Shutdown(context.Background()) },
		"Close":    (*server.Server).Close,
	} {
		t.Run(name, func(t *testing.T) {
			srv, _ := newServer(t, server.Options{})
			require.NoError(t, end(srv))
			require.NoError(t, end(srv), "a second time does nothing")
			p := newPipes()
			require.ErrorIs(t, srv.Serve(p), http.ErrServerClosed)
			_, err := p.Accept()
			require.ErrorIs(t, err, net.ErrClosed)
			require.ErrorIs(t, srv.ListenAndServe("127.0.0.1:0"), http.ErrServerClosed)
		})
	}
}

func TestCloseCancelsWithoutWaiting(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	began, ended := make(chan struct{}), make(chan struct{})
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		close(began)
		<-req.Context().Done()
		close(ended)
		return nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	_, in := raw(t, l.Addr().String())
	<-began
	require.NoError(t, srv.Close())
	<-ended
	_, err = io.ReadAll(in)
	require.NoError(t, err, "the connection is closed")
	require.ErrorIs(t, <-served, http.ErrServerClosed)
}

// Shutdown doesn't wait for a hijacked connection, but ends its request.
func TestHijackedRequestsAreCancelled(t *testing.T) {
	for name, end := range map[string]func(*server.Server) error{
		"Shutdown": func(srv *server.Server) error { return srv.Shutdown(context.Background()) },
		"Close":    (*server.Server).Close,
	} {
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
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			served := make(chan error, 1)
			go func() { served <- srv.Serve(l) }()
			raw(t, l.Addr().String())
			<-began
			require.NoError(t, end(srv))
			<-ended
			require.ErrorIs(t, <-served, http.ErrServerClosed)
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

// Clients that stop, each at its own point, and how long the server waits for them.
func TestTimeouts(t *testing.T) {
	const long = 24 * time.Hour
	all := func(d time.Duration) server.Options {
		return server.Options{ReadHeaderTimeout: d, ReadTimeout: d, WriteTimeout: d, IdleTimeout: d}
	}
	header := "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n"
	for name, tt := range map[string]struct {
		send    string
		answers bool // one response comes before the wait
		o       server.Options
		want    time.Duration
	}{
		"in the header":              {"POST", false, server.Options{}, 10 * time.Second},
		"in the header, own":         {"POST", false, server.Options{ReadHeaderTimeout: time.Second}, time.Second},
		"in the header, none":        {"POST", false, server.Options{ReadHeaderTimeout: -1}, long},
		"in the body":                {header, false, server.Options{}, time.Minute},
		"in the body, own":           {header, false, server.Options{ReadTimeout: 2 * time.Second, WriteTimeout: time.Hour}, 2 * time.Second},
		"in the body, none":          {header, false, server.Options{ReadTimeout: -1}, long},
		"between requests":           {header + "x", true, server.Options{}, 2 * time.Minute},
		"between requests, own":      {header + "x", true, server.Options{IdleTimeout: time.Second}, time.Second},
		"between requests, none":     {header + "x", true, server.Options{IdleTimeout: -1}, long},
		"between requests, all none": {header + "x", true, all(-1), long},
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
	for name, tt := range map[string]struct {
		timeout, want time.Duration
	}{"default": {0, time.Minute}, "own": {time.Second, time.Second}, "none": {-1, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, _ := newServer(t, server.Options{WriteTimeout: tt.timeout})
				failed := make(chan time.Duration, 1)
				srv.HandleFunc("GET /", func(w http.ResponseWriter, _ *server.Request) error {
					began := time.Now()
					_ = http.NewResponseController(w).Flush()
					failed <- time.Since(began)
					return http.ErrAbortHandler
				})
				p, _ := serve(t, srv)
				conn, err := p.dial(t.Context(), "", "")
				require.NoError(t, err)
				_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				require.NoError(t, err)
				if tt.want == 0 { // it is the client that ends the wait
					tt.want = 24 * time.Hour
					time.AfterFunc(tt.want, func() { conn.Close() })
				}
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
