package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
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
)

// seenRequest is what an observer got of a request.
type seenRequest struct {
	server.RequestInfo
	states    map[string]reqctx.State
	decisions []ratelimit.Decision
}

// watcher is an observer that keeps what it gets.
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

// last returns the only request since the last call.
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

func TestObserverGetsTheDecisions(t *testing.T) {
	w := &watcher{}
	srv := observedServer(t, w)
	for _, allowed := range []bool{true, false} {
		ask(srv, "GET", "/limited")
		got := w.last(t)
		require.Len(t, got.decisions, 1)
		d := got.decisions[0]
		require.Equal(t, "seen", d.Policy)
		require.Equal(t, "seen", d.Quota)
		require.EqualValues(t, 1, d.Rule.Limit())
		require.Equal(t, allowed, d.Result.Allowed)
		require.Equal(t, !allowed, d.Result.Violated)
	}
}

func TestNestedServerIsObservedOnce(t *testing.T) {
	w := &watcher{}
	srv := observedServer(t, w)
	srv.Handle("GET /outer/", http.StripPrefix("/outer", srv))
	srv.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(struct{ http.ResponseWriter }{w}, r) // hides the gate
		})
	})
	a := ask(srv, "GET", "/outer/error")
	got := w.last(t)
	require.Equal(t, 500, got.Status)
	require.EqualValues(t, len(a.body), got.Written)
	require.ErrorIs(t, got.Err, errBroken)
}

// The last observer's context is the innermost, so ends are in reverse order.
func TestSeveralObservers(t *testing.T) {
	var log watcher
	first, second := named{&log, "first "}, named{&log, "second "}
	srv := observedServer(t, first, second)
	ask(srv, "GET", "/ok/1")
	require.Equal(t, []string{"first start", "second start", "second end", "first end", "first request", "second request"}, log.calls)
}

// Observers of requests only are called beside those that observe resolutions, too.
func TestObserversOfRequestsOnly(t *testing.T) {
	var log watcher
	ask(observedServer(t, ends{&log, "quiet"}), "GET", "/ok/1")
	require.Equal(t, []string{"quiet request"}, log.calls)
	log.calls = nil
	srv := observedServer(t, ends{&log, "first"}, named{&log, "second "}, ends{&log, "third"})
	ask(srv, "GET", "/ok/1")
	require.Equal(t, []string{"second start", "second end", "first request", "second request", "third request"}, log.calls)
}

// ends is an observer with the one method that all have.
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

func TestTimeoutHandlerWithLateFailure(t *testing.T) {
	w := &watcher{}
	srv, _ := newServer(t, server.Options{Observers: []server.Observer{w}})
	release, failed := make(chan struct{}), make(chan struct{})
	h := srv.Wrap(http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-release
		server.WriteError(w, r, errBroken) // concurrently with the request's end
		close(failed)
	}), time.Millisecond, "late"))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	close(release)
	<-failed
	require.Equal(t, 503, w.last(t).Status)
}
