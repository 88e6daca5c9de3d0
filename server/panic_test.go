package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

const internalError = `{"status":500,"title":"Internal Server Error"}`

// resolving provides mark, whose Resolve function calls fn. With a timeout, fn runs on a separate goroutine.
func resolving(srv *server.Server, timeout time.Duration, fn func()) {
	reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { fn(); return "", nil },
		Timeout: timeout,
	})
}

// explode panics. Tests look for its name in the logged stack.
func explode() { panic("boom") }

func exit() { runtime.Goexit() }

func TestPanicIsLoggedOnceAndAnswered500(t *testing.T) {
	for name, tt := range map[string]struct {
		provide func(srv *server.Server)
		logged  map[string]any // besides the request
		stack   string
	}{
		"property": {
			provide: func(srv *server.Server) { resolving(srv, 0, explode) },
			logged:  map[string]any{"panic": "boom", "property": "mark"}, stack: "explode",
		},
		"Commit": {
			provide: func(srv *server.Server) {
				provide(srv, func(h http.Header) error { h.Set("Set-Cookie", "promise=1"); explode(); return nil }, nil)
			},
			logged: map[string]any{"panic": "boom"}, stack: "explode",
		},
		"goexit in a property on its own goroutine": {
			provide: func(srv *server.Server) { resolving(srv, time.Minute, exit) },
			logged:  map[string]any{"error": lazy.ErrGoexit.Error()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, server.Options{})
			tt.provide(srv)
			srv.HandleFunc("GET /path", func(w http.ResponseWriter, req *server.Request) error {
				w.Header().Set("Set-Cookie", "mine=1")
				w.Header().Set("Content-Encoding", "gzip")
				_, err := mark.Get(req)
				return err
			})
			res := ask(srv, "GET", "/path")
			requireProblem(t, 500, internalError, res)
			require.Empty(t, res.Header.Get("Content-Encoding"))
			require.Equal(t, tt.stack == "", len(res.Cookies()) > 0)
			line := l.only(t)
			require.Equal(t, []any{"GET", "/path"}, []any{line["method"], line["path"]})
			for name, v := range tt.logged {
				require.Equal(t, v, line[name], name)
			}
			if tt.stack != "" {
				require.Contains(t, line["stack"], tt.stack)
			}
		})
	}
}

// TestGoexitEndsTheConnection checks that a handler which ends its goroutine is logged, and that others are served.
func TestGoexitEndsTheConnection(t *testing.T) {
	for protocol, cut := range map[string]string{"HTTP/1": "EOF", "HTTP/2": "stream error"} {
		for path, h := range map[string]server.HandlerFunc{
			"/handler":  func(http.ResponseWriter, *server.Request) error { exit(); return nil },
			"/property": marked(nothing),
			"/write":    marked(func(w http.ResponseWriter, _ *server.Request) error { return writeText(w, "body") }),
		} {
			t.Run(protocol+path, func(t *testing.T) {
				srv, l := newServer(t, server.Options{})
				if path == "/property" {
					resolving(srv, 0, exit)
				} else {
					provide(srv, func(http.Header) error { exit(); return nil }, nil)
				}
				srv.HandleFunc("GET "+path, h)
				srv.HandleFunc("GET /alive", nothing)
				url, c := protocols[protocol](t, srv)
				_, err := request(t, c, "GET", url+path)
				require.ErrorContains(t, err, cut)
				require.Equal(t, 200, statusOf(t, c, url+"/alive"))
				line := l.only(t)
				require.Equal(t, path, line["path"])
				require.Equal(t, lazy.ErrGoexit.Error(), line["panic"])
				require.Contains(t, line["stack"], "exit")
			})
		}
	}
}

// If a handler fails after it has sent the header, the connection is cut.
func TestPanicAfterTheHeaderCutsTheConnection(t *testing.T) {
	for name, tt := range map[string]struct {
		end    func(w http.ResponseWriter, req *server.Request) error
		logged int
	}{
		"error":        {func(http.ResponseWriter, *server.Request) error { return errSave }, 1},
		"panic":        {func(http.ResponseWriter, *server.Request) error { explode(); return nil }, 1},
		"property":     {marked(func(http.ResponseWriter, *server.Request) error { return nil }), 1},
		"goexit":       {func(http.ResponseWriter, *server.Request) error { exit(); return nil }, 1},
		"abort":        {func(http.ResponseWriter, *server.Request) error { panic(http.ErrAbortHandler) }, 0},
		"return abort": {func(http.ResponseWriter, *server.Request) error { return http.ErrAbortHandler }, 0},
	} {
		for protocol, cut := range map[string]string{"HTTP/1": io.ErrUnexpectedEOF.Error(), "HTTP/2": "stream error"} {
			t.Run(name+", "+protocol, func(t *testing.T) {
				srv, l := newServer(t, server.Options{})
				resolving(srv, 0, explode)
				closed := make(chan struct{})
				srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
					req.OnClose(func() error { close(closed); return nil })
					_, _ = io.WriteString(w, "half")
					_ = http.NewResponseController(w).Flush()
					return tt.end(w, req)
				})
				url, c := protocols[protocol](t, srv)
				res, err := request(t, c, "GET", url)
				require.ErrorContains(t, err, cut)
				require.Equal(t, "half", res.body)
				<-closed
				require.Len(t, l.at("ERROR"), tt.logged)
				require.Len(t, l.at(""), tt.logged, "net/http has nothing to add")
			})
		}
	}
}

// If a handler recovers a panic of a Commit function and goes on to write, the response is still a 500.
func TestRecoveredCommitPanicIsStillAFailure(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	provide(srv, func(http.Header) error { panic("boom") }, nil)
	srv.HandleFunc("GET /", marked(func(w http.ResponseWriter, _ *server.Request) error {
		func() { defer func() { _ = recover() }(); _, _ = io.WriteString(w, "first") }()
		return writeText(w, "second")
	}))
	requireProblem(t, 500, internalError, ask(srv, "GET", "/"))
	l.only(t)
}

// explodingReader is a body that panics when it is read.
type explodingReader struct{}

func (explodingReader) Read([]byte) (int, error) { panic("boom") }

// explodingProblem is an error that panics when it becomes a response.
type explodingProblem struct{ error }

func (explodingProblem) Problem() (int, map[string]any) { panic("boom") }

// explodingError is an error that panics when it is logged.
type explodingError struct{}

func (explodingError) Error() string { panic("boom") }

// panicPhase describes a server whose requests to /path panic in one phase.
type panicPhase struct {
	prop   reqctx.Prop[string] // of mark, with a Resolve unless it has one
	use    func(http.Handler) http.Handler
	handle server.HandlerFunc // reads mark if nil
	want   int                // status, 0 for a response that is cut off
	quiet  bool               // nothing is logged
	only1  bool               // has no meaning for HTTP/2
}

var panicPhases = map[string]panicPhase{
	"middleware before the handler": {want: 500, use: func(http.Handler) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") })
	}},
	"middleware after the handler": {want: 0, use: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r); panic("boom") })
	}},
	"handler":             {want: 500, handle: func(http.ResponseWriter, *server.Request) error { panic("boom") }},
	"Problem of an error": {want: 500, handle: func(http.ResponseWriter, *server.Request) error { return explodingProblem{errors.New("e")} }},
	"Error of an error":   {want: 500, handle: func(http.ResponseWriter, *server.Request) error { return explodingError{} }},
	"Resolve":             {want: 500, prop: reqctx.Prop[string]{Resolve: func(context.Context) (string, error) { panic("boom") }}},
	"Resolve on a goroutine": {want: 500, prop: reqctx.Prop[string]{
		Timeout: time.Minute, Resolve: func(context.Context) (string, error) { panic("boom") },
	}},
	"Resolve of several": {
		want: 500, prop: reqctx.Prop[string]{Resolve: func(context.Context) (string, error) { panic("boom") }},
		handle: func(_ http.ResponseWriter, req *server.Request) error {
			return req.Resolve("mark", "session", "params")
		},
	},
	"Store": {
		want: 500, prop: reqctx.Prop[string]{Store: func(context.Context, string) error { panic("boom") }},
		handle: func(_ http.ResponseWriter, req *server.Request) error { return mark.Set(req.Context(), "v") },
	},
	"Commit": {want: 500, prop: reqctx.Prop[string]{Commit: func(context.Context, string, int, http.Header) error { panic("boom") }}},
	"Close":  {want: 200, prop: reqctx.Prop[string]{Close: func(context.Context, string, error) error { panic("boom") }}},
	"OnClose": {want: 200, handle: func(_ http.ResponseWriter, req *server.Request) error {
		req.OnClose(func() error { panic("boom") })
		return nil
	}},
	"task": {want: 200, handle: func(_ http.ResponseWriter, req *server.Request) error {
		return req.Go("task", func(context.Context) error { panic("boom") })
	}},
	"task after the handler": {want: 200, handle: func(_ http.ResponseWriter, req *server.Request) error {
		return req.Go("task", func(ctx context.Context) error { <-ctx.Done(); panic("boom") })
	}},
	"no such status": {want: 500, handle: func(w http.ResponseWriter, _ *server.Request) error { w.WriteHeader(7); return nil }},
	"after an informational response": {want: 500, handle: func(w http.ResponseWriter, _ *server.Request) error {
		w.WriteHeader(http.StatusEarlyHints)
		panic("boom")
	}},
	"while streaming": {want: 0, handle: func(w http.ResponseWriter, _ *server.Request) error {
		for range 3 {
			_, _ = io.WriteString(w, "event\n")
			_ = http.NewResponseController(w).Flush()
		}
		panic("boom")
	}},
	"reader of the body": {want: 0, handle: func(w http.ResponseWriter, _ *server.Request) error {
		_, err := io.Copy(w, explodingReader{})
		return err
	}},
	"after Hijack": {want: 0, only1: true, handle: func(w http.ResponseWriter, _ *server.Request) error {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return err
		}
		defer conn.Close()
		panic("boom")
	}},
	"http.ErrAbortHandler": {want: 0, quiet: true, handle: func(http.ResponseWriter, *server.Request) error { panic(http.ErrAbortHandler) }},
}

// A panic in any phase of a request only ends that request. It is logged once, and the client gets a 500 or a
// response that is cut off.
func TestPanicsInEveryPhase(t *testing.T) {
	for protocol, listen := range map[string]func(testing.TB, *server.Server) (string, *http.Client){"HTTP/1": listenItself, "HTTP/2": h2Server} {
		for name, phase := range panicPhases {
			if phase.only1 && protocol != "HTTP/1" {
				continue
			}
			t.Run(name+", "+protocol, func(t *testing.T) {
				releases(t)
				srv, l := newServer(t, server.Options{})
				phase.provide(srv)
				url, c := listen(t, srv)
				const requests = 8
				concurrently(requests, func(int) {
					if got := statusOf(t, c, url+"/path"); got != phase.want {
						t.Errorf("status %d, want %d", got, phase.want)
					}
				})
				require.Equal(t, 204, statusOf(t, c, url+"/alive"), "others are served")
				c.CloseIdleConnections() // some may have been dialled in vain: a Shutdown waits 5 s for those
				require.NoError(t, srv.Shutdown(t.Context()))
				want := requests
				if phase.quiet {
					want = 0
				}
				// Shutdown doesn't wait for handlers of hijacked connections.
				require.Eventually(t, func() bool { return len(l.at("ERROR")) == want }, 10*time.Second, time.Millisecond)
			})
		}
	}
}

func (p panicPhase) provide(srv *server.Server) {
	if p.prop.Resolve == nil {
		p.prop.Resolve = func(context.Context) (string, error) { return "v", nil }
	}
	reqctx.Provide(srv.Registry(), mark, p.prop)
	h := p.handle
	if h == nil {
		h = marked(func(w http.ResponseWriter, _ *server.Request) error { return writeText(w, "body") })
	}
	if p.use != nil {
		srv.Use(func(next http.Handler) http.Handler {
			exploding := p.use(next)
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/alive" {
					next.ServeHTTP(w, r)
					return
				}
				exploding.ServeHTTP(w, r)
			})
		})
	}
	srv.HandleFunc("GET /path", h)
	srv.HandleFunc("GET /alive", func(w http.ResponseWriter, _ *server.Request) error {
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

// statusOf returns the status of a whole response, or 0 if it was cut off.
func statusOf(t *testing.T, c *http.Client, url string) int {
	res, err := request(t, c, "GET", url)
	if err != nil {
		return 0
	}
	return res.StatusCode
}
