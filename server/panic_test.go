package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

const internalError = `{"status":500,"title":"Internal Server Error"}`

// resolving provides a property that resolves by fn, and returns it. With a
// timeout it is resolved on a goroutine of its own.
func resolving(srv *server.Server, timeout time.Duration, fn func()) {
	reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { fn(); return "", nil },
		Timeout: timeout,
	})
}

// explode is where the stack that is logged has to lead.
func explode() { panic("boom") }

func exit() { runtime.Goexit() }

func TestPanicIsLoggedOnceAndAnswered500(t *testing.T) {
	ok := func(http.ResponseWriter, *server.Request) error { return nil }
	for name, tt := range map[string]struct {
		provide func(srv *server.Server)
		h       server.HandlerFunc
		logged  map[string]any // besides the request
		stack   string
	}{
		"handler": {
			h:      func(http.ResponseWriter, *server.Request) error { explode(); return nil },
			logged: map[string]any{"panic": "boom"}, stack: "explode",
		},
		"property": {
			provide: func(srv *server.Server) { resolving(srv, 0, explode) }, h: marked(ok),
			logged: map[string]any{"panic": "boom", "property": "mark"}, stack: "explode",
		},
		"property on its own goroutine": {
			provide: func(srv *server.Server) { resolving(srv, time.Minute, explode) }, h: marked(ok),
			logged: map[string]any{"panic": "boom", "property": "mark"}, stack: "explode",
		},
		"property, twice": {
			provide: func(srv *server.Server) { resolving(srv, 0, explode) },
			h: func(w http.ResponseWriter, req *server.Request) error {
				func() { defer func() { _ = recover() }(); _, _ = mark.Get(req.Context()) }()
				_, _ = req.Get("mark")
				return nil
			},
			logged: map[string]any{"panic": "boom", "property": "mark"}, stack: "explode",
		},
		"Commit": {
			provide: func(srv *server.Server) {
				reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
					Resolve: func(context.Context) (string, error) { return "", nil },
					Commit: func(_ context.Context, _ string, _ int, h http.Header) error {
						h.Set("Set-Cookie", "promise=1")
						explode()
						return nil
					},
				})
			},
			h: marked(ok), logged: map[string]any{"panic": "boom"}, stack: "explode",
		},
		"goexit in the handler": {
			h:      func(http.ResponseWriter, *server.Request) error { exit(); return nil },
			logged: map[string]any{"panic": lazy.ErrGoexit.Error()}, stack: "exit",
		},
		"goexit in a property": {
			provide: func(srv *server.Server) { resolving(srv, 0, exit) }, h: marked(ok),
			logged: map[string]any{"panic": lazy.ErrGoexit.Error()}, stack: "exit",
		},
		"goexit in a property on its own goroutine": {
			provide: func(srv *server.Server) { resolving(srv, time.Minute, exit) }, h: marked(ok),
			logged: map[string]any{"error": lazy.ErrGoexit.Error()},
		},
		"goexit in Commit": {
			provide: func(srv *server.Server) {
				reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
					Resolve: func(context.Context) (string, error) { return "", nil },
					Commit:  func(context.Context, string, int, http.Header) error { exit(); return nil },
				})
			},
			h:      marked(func(w http.ResponseWriter, _ *server.Request) error { _, err := io.WriteString(w, "body"); return err }),
			logged: map[string]any{"panic": lazy.ErrGoexit.Error()}, stack: "exit",
		},
		"no such status": {
			h:      func(w http.ResponseWriter, _ *server.Request) error { w.WriteHeader(7); return nil },
			logged: map[string]any{}, stack: "WriteHeader",
		},
	} {
		for protocol, listen := range protocols {
			t.Run(name+", "+protocol, func(t *testing.T) {
				srv, l := newServer(t, server.Options{})
				if tt.provide != nil {
					tt.provide(srv)
				}
				srv.HandleFunc("GET /path", func(w http.ResponseWriter, req *server.Request) error {
					w.Header().Set("Set-Cookie", "mine=1")
					w.Header().Set("Content-Encoding", "gzip")
					return tt.h(w, req)
				})
				srv.HandleFunc("GET /alive", ok)
				url, c := listen(t, srv)
				res, err := request(t, c, "GET", url+"/path")
				if tt.stack == "exit" && protocol == "HTTP/2" {
					require.ErrorContains(t, err, "stream error", "after the whole response")
				} else {
					require.NoError(t, err)
				}
				requireProblem(t, 500, internalError, res)
				require.Equal(t, tt.stack == "exit" && protocol == "HTTP/1", res.Close, "net/http closes the connection")
				require.Empty(t, res.Header.Get("Content-Encoding"))
				if tt.stack != "" {
					require.Empty(t, res.Cookies())
				}
				line := l.only(t)
				require.Equal(t, "GET", line["method"])
				require.Equal(t, "/path", line["path"])
				for name, v := range tt.logged {
					require.Equal(t, v, line[name], name)
				}
				if tt.stack != "" {
					require.Contains(t, line["stack"], tt.stack)
				}

				res, err = request(t, c, "GET", url+"/alive")
				require.NoError(t, err)
				require.Equal(t, 200, res.StatusCode)
				require.NoError(t, srv.Shutdown(t.Context()))
				l.only(t)
			})
		}
	}
}

// net/http closes the connection before the end of a body of unknown length.
func TestPageOfAHandlerThatExits(t *testing.T) {
	for _, method := range []string{"GET", "POST", "HEAD"} {
		for protocol, listen := range protocols {
			t.Run(method+", "+protocol, func(t *testing.T) {
				srv, _ := newServer(t, server.Options{WriteProblem: func(w http.ResponseWriter, r *http.Request, _ *server.Problem) {
					http.Redirect(w, r, "/sorry", http.StatusSeeOther)
				}})
				srv.HandleFunc("/", func(http.ResponseWriter, *server.Request) error { exit(); return nil })
				url, c := listen(t, srv)
				c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
				res, err := request(t, c, method, url)
				if protocol == "HTTP/2" && method != "HEAD" {
					require.ErrorContains(t, err, "stream error", "after the whole response")
				} else {
					require.NoError(t, err)
				}
				require.Equal(t, 303, res.StatusCode)
				require.Equal(t, method == "GET", strings.HasPrefix(res.body, "<a "))
			})
		}
	}
}

// After the header there is no other answer than to cut the connection.
func TestPanicAfterTheHeaderCutsTheConnection(t *testing.T) {
	for name, tt := range map[string]struct {
		end    func(w http.ResponseWriter, req *server.Request) error
		logged int
	}{
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

// http.ErrAbortHandler is how a handler asks for the cut.
func TestAbortBeforeTheHeader(t *testing.T) {
	for name, h := range map[string]server.HandlerFunc{
		"panic":    func(http.ResponseWriter, *server.Request) error { panic(http.ErrAbortHandler) },
		"return":   func(http.ResponseWriter, *server.Request) error { return http.ErrAbortHandler },
		"property": marked(func(http.ResponseWriter, *server.Request) error { return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, server.Options{})
			resolving(srv, 0, func() { panic(http.ErrAbortHandler) })
			srv.HandleFunc("GET /", h)
			url, _ := listen(t, srv)
			_, in := raw(t, url)
			_, err := in.ReadByte()
			require.ErrorIs(t, err, io.EOF)
			require.NoError(t, srv.Shutdown(t.Context()))
			require.Empty(t, l.at(""))
		})
	}
}

// A handler that recovers from a panic of a Commit function cannot respond after all.
func TestRecoveredCommitPanicIsStillAFailure(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { return "", nil },
		Commit:  func(context.Context, string, int, http.Header) error { panic("boom") },
	})
	srv.HandleFunc("GET /", marked(func(w http.ResponseWriter, _ *server.Request) error {
		func() { defer func() { _ = recover() }(); _, _ = io.WriteString(w, "first") }()
		_, err := io.WriteString(w, "second")
		return err
	}))
	requireProblem(t, 500, internalError, ask(srv, "GET", "/"))
	l.only(t)
}

// Clean-ups run, and are logged, whatever became of the handler.
func TestCleanUpsRunAfterAPanic(t *testing.T) {
	srv, l := newServer(t, server.Options{})
	var order []string
	reqctx.Provide(srv.Registry(), mark, reqctx.Prop[string]{
		Resolve: func(context.Context) (string, error) { return "v", nil },
		Close: func(ctx context.Context, v string, _ error) error {
			order = append(order, "close "+v)
			return errors.Join(ctx.Err(), errors.New("close failed"))
		},
	})
	srv.HandleFunc("GET /", marked(func(_ http.ResponseWriter, req *server.Request) error {
		req.OnClose(func() error { order = append(order, "hook"); panic("in the hook") })
		panic("boom")
	}))
	require.Equal(t, 500, ask(srv, "GET", "/").StatusCode)
	require.NoError(t, srv.Shutdown(t.Context()))
	require.Equal(t, []string{"hook", "close v"}, order)
	errs := l.at("ERROR")
	require.Len(t, errs, 2)
	require.Equal(t, "boom", errs[0]["panic"])
	text, _ := errs[1]["error"].(string)
	require.True(t, strings.Contains(text, "in the hook") && strings.Contains(text, "close failed"), text)
}
