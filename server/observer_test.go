package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/inspect"
)

// seenRequest contains what an observer has learned about a request.
type seenRequest struct {
	server.RequestInfo
	states    map[string]reqctx.State
	decisions []ratelimit.Decision
}

// watcher is an observer that records its calls.
type watcher struct {
	mu       sync.Mutex
	calls    []string
	requests []seenRequest
}

func (w *watcher) ResolveStart(ctx context.Context, name string) context.Context {
	w.note("start " + name)
	return ctx
}

func (w *watcher) ResolveEnd(_ context.Context, name string, _ time.Duration, _ error) {
	w.note("end " + name)
}

func (w *watcher) note(call string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, call)
}

func (w *watcher) RequestEnd(ctx context.Context, info server.RequestInfo) {
	r := seenRequest{RequestInfo: info, states: map[string]reqctx.State{}}
	for name, p := range reqctx.From(ctx).Props() {
		r.states[name] = p.State
	}
	r.decisions = slices.Collect(ratelimit.Decisions(ctx))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, r)
}

// last returns the only request since the previous call of last.
func (w *watcher) last(t *testing.T) seenRequest {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Len(t, w.requests, 1)
	r := w.requests[0]
	w.requests = nil
	return r
}

var errBroken = errors.New("broken")

func observedServer(t *testing.T, observers ...server.Observer) *server.Server {
	srv, _ := newServer(t, server.Options{
		Observers:  observers,
		RateLimits: []*ratelimit.Policy{{Name: "seen", Rules: []ratelimit.Rule{ratelimit.PerMinute(1)}, Key: ratelimit.ByIP()}},
	})
	reqctx.Provide(srv.Registry(), reqctx.NewKey[int]("observed"), reqctx.Prop[int]{
		Resolve: func(context.Context) (int, error) { return 1, nil },
		Commit: func(ctx context.Context, _, _ int, _ http.Header) error {
			if reqctx.From(ctx).Request().URL.Path == "/commit" {
				return errBroken
			}
			return nil
		},
	})
	handle := func(path string, h func(w http.ResponseWriter, req *server.Request) error) {
		srv.HandleFunc("GET "+path, h)
	}
	handle("/ok/{id}", func(w http.ResponseWriter, req *server.Request) error {
		_, _ = req.Get("observed")
		_, _ = w.Write([]byte("four"))
		_, _ = io.WriteString(w, "five!")
		_, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("six..."))
		return err
	})
	handle("/hijack", func(w http.ResponseWriter, _ *server.Request) error {
		_, _, err := http.NewResponseController(w).Hijack()
		return err
	})
	handle("/empty", func(http.ResponseWriter, *server.Request) error { return nil })
	handle("/error", func(http.ResponseWriter, *server.Request) error { return errBroken })
	handle("/commit", func(w http.ResponseWriter, req *server.Request) error { _, err := req.Get("observed"); return err })
	handle("/panic", func(http.ResponseWriter, *server.Request) error { panic("oh") })
	handle("/cut", func(w http.ResponseWriter, _ *server.Request) error {
		_, _ = w.Write([]byte("part"))
		return errBroken
	})
	handle("/limited", func(_ http.ResponseWriter, req *server.Request) error {
		res, err := req.RateLimit().Take()
		return errors.Join(err, res.Err())
	})
	return srv
}

func TestObserverGetsTheRequest(t *testing.T) {
	w := &watcher{}
	srv := observedServer(t, w)

	began := time.Now()
	ask(srv, "GET", "/ok/7")
	got := w.last(t)
	require.Equal(t, "GET /ok/{id}", got.Pattern)
	require.Equal(t, "/ok/7", got.Request.URL.Path)
	require.Equal(t, 200, got.Status)
	require.EqualValues(t, 15, got.Written)
	require.NoError(t, got.Err)
	require.False(t, got.Began.Before(began))
	require.Positive(t, got.Took)
	require.Equal(t, reqctx.Resolved, got.states["observed"], "the properties are not closed yet")
	require.Equal(t, reqctx.Unused, got.states["ratelimit.seen.take"])
	require.Empty(t, got.decisions)

	ask(srv, "GET", "/empty")
	require.Equal(t, 200, w.last(t).Status)
	srv.ServeHTTP(hijackable{httptest.NewRecorder()}, httptest.NewRequest("GET", "/hijack", nil))
	require.Zero(t, w.last(t).Status)

	a := ask(srv, "GET", "/elsewhere")
	got = w.last(t)
	require.Equal(t, 404, got.Status)
	require.Empty(t, got.Pattern)
	require.EqualValues(t, len(a.body), got.Written)
}

func TestObserverGetsTheError(t *testing.T) {
	w := &watcher{}
	srv := observedServer(t, w)
	for path, status := range map[string]int{"/error": 500, "/commit": 500} {
		ask(srv, "GET", path)
		got := w.last(t)
		require.Equal(t, status, got.Status, path)
		require.ErrorIs(t, got.Err, errBroken, path)
	}

	ask(srv, "GET", "/panic")
	got := w.last(t)
	var p *lazy.PanicError
	require.ErrorAs(t, got.Err, &p)
	require.Equal(t, "oh", p.Value)
	require.Equal(t, 500, got.Status)

	require.Panics(t, func() { ask(srv, "GET", "/cut") }, "the connection is cut")
	got = w.last(t)
	require.ErrorIs(t, got.Err, errBroken)
	require.Equal(t, 200, got.Status)
	require.EqualValues(t, 4, got.Written)
}

func TestNestedServerIsObservedOnce(t *testing.T) {
	w := &watcher{}
	srv := observedServer(t, w)
	srv.Handle("GET /outer/", http.StripPrefix("/outer", srv))
	srv.Use(middleware(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(struct{ http.ResponseWriter }{w}, r) // hides the gate
	}))
	a := ask(srv, "GET", "/outer/error")
	got := w.last(t)
	require.Equal(t, 500, got.Status)
	require.EqualValues(t, len(a.body), got.Written)
	require.ErrorIs(t, got.Err, errBroken)
}

// The last observer's context is the innermost, so ResolveEnd is called in reverse order. Observers that only observe
// requests are called, too.
func TestSeveralObservers(t *testing.T) {
	var log watcher
	srv := observedServer(t, ends{&log, "first"}, named{&log, "second "}, named{&log, "third "})
	ask(srv, "GET", "/ok/1")
	require.Equal(t, []string{"second start", "third start", "third end", "second end", "first request", "second request", "third request"}, log.calls)
}

// ends is an observer that implements only RequestEnd.
type ends struct {
	log  *watcher
	name string
}

func (e ends) RequestEnd(context.Context, server.RequestInfo) { e.log.note(e.name + " request") }

type named struct {
	*watcher
	name string
}

func (n named) ResolveStart(ctx context.Context, _ string) context.Context {
	n.note(n.name + "start")
	return ctx
}

func (n named) ResolveEnd(context.Context, string, time.Duration, error) { n.note(n.name + "end") }
func (n named) RequestEnd(context.Context, server.RequestInfo)           { n.note(n.name + "request") }

// nilError is an error type whose Error method panics for a nil pointer.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// panickingObserver panics in all of its methods.
type panickingObserver struct{}

func (*panickingObserver) ResolveStart(context.Context, string) context.Context { panic("start") }

func (*panickingObserver) ResolveEnd(context.Context, string, time.Duration, error) { panic("end") }
func (*panickingObserver) RequestEnd(context.Context, server.RequestInfo)           { panic("request") }

// TestObserversDoNotChangeARequest checks that responses and clean-ups are the same with an inspector, with a
// panicking observer, and without observers.
func TestObserversDoNotChangeARequest(t *testing.T) {
	inspector, err := inspect.New(inspect.Options{})
	require.NoError(t, err)
	for name, observers := range map[string][]server.Observer{
		"none": nil, "inspector": {inspector}, "panicking": {&panickingObserver{}},
	} {
		t.Run(name, func(t *testing.T) {
			srv, log := newServer(t, server.Options{Observers: observers})
			closed := 0
			provide(srv, nil, func() error { closed++; return nil })
			bad := reqctx.NewKey[int]("bad")
			reqctx.Provide(srv.Registry(), bad, reqctx.Prop[int]{Resolve: func(context.Context) (int, error) { return 0, (*nilError)(nil) }})
			srv.HandleFunc("GET /error", marked(func(http.ResponseWriter, *server.Request) error { return (*nilError)(nil) }))
			srv.HandleFunc("GET /dealt-with", marked(func(_ http.ResponseWriter, req *server.Request) error {
				_, err := bad.Get(req)
				require.True(t, err != nil)
				return nil
			}))
			for path, status := range map[string]int{"/error": 500, "/dealt-with": 200} {
				closed = 0
				w := send(srv, httptest.NewRequest(http.MethodGet, path, nil))
				require.Equal(t, status, w.StatusCode, path)
				require.Equal(t, 1, closed, path)
			}
			require.NotEmpty(t, log.at("ERROR"))
		})
	}
}

// An observer that fails a test with FailNow ends the goroutine.
func TestObserverThatEndsTheGoroutine(t *testing.T) {
	srv, l := newServer(t, server.Options{Observers: []server.Observer{exitingObserver{}}})
	closed := make(chan bool, 1)
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		req.OnClose(func() error { closed <- true; return nil })
		return nil
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		send(srv, httptest.NewRequest(http.MethodGet, "/", nil))
	}()
	<-ended
	require.Len(t, closed, 1)
	require.Equal(t, lazy.ErrGoexit.Error(), l.only(t)["panic"])
}

type exitingObserver struct{}

func (exitingObserver) RequestEnd(context.Context, server.RequestInfo) { runtime.Goexit() }

func TestAccessLogWithoutLogger(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	srv, _ := newServer(t, server.Options{Observers: []server.Observer{server.AccessLog(nil)}})
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	ask(srv, "GET", "/")
	require.Contains(t, out.String(), "msg=request method=GET")
}

func TestAccessLog(t *testing.T) {
	var out bytes.Buffer
	srv, _ := newServer(t, server.Options{Observers: []server.Observer{server.AccessLog(slog.New(slog.NewJSONHandler(&out, nil)))}})
	srv.HandleFunc("/users/{id}", func(w http.ResponseWriter, _ *server.Request) error { return writeText(w, "ada") })
	srv.HandleFunc("/files/{user}/", func(http.ResponseWriter, *server.Request) error { return nil })
	for _, tt := range []struct {
		method, target string
		want           map[string]any
	}{
		{"GET", "/users/secret?q=secret", map[string]any{"method": "GET", "route": "/users/{id}", "status": 200.0, "bytes": 3.0}},
		{"GET", "/secret", map[string]any{"method": "GET", "route": "", "status": 404.0}},
		{"SECRET", "/users/7", map[string]any{"method": "other", "route": "/users/{id}", "status": 200.0, "bytes": 3.0}},
		{"CONNECT", "/files/secret", map[string]any{"method": "CONNECT", "route": "", "status": 307.0}},
		{"CONNECT", "/files/secret/", map[string]any{"method": "CONNECT", "route": "/files/{user}/", "status": 200.0}},
	} {
		out.Reset()
		send(srv, httptest.NewRequest(tt.method, tt.target, nil))
		require.NotContains(t, out.String(), "secret")
		var line map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &line), "one line")
		require.Equal(t, "request", line["msg"])
		require.Equal(t, "INFO", line["level"])
		require.GreaterOrEqual(t, line["ms"], 0.0)
		for name, want := range tt.want {
			require.Equal(t, want, line[name], name)
		}
		require.Len(t, line, 8)
	}
}
