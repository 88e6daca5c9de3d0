package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

// explodingReader is a body that panics when it is read.
type explodingReader struct{}

func (explodingReader) Read([]byte) (int, error) { panic("boom") }

// explodingProblem is an error that panics when it becomes a response.
type explodingProblem struct{ error }

func (explodingProblem) Problem() (int, map[string]any) { panic("boom") }

// explodingError is an error that panics when it is logged.
type explodingError struct{}

func (explodingError) Error() string { panic("boom") }

// panicPhase is a server with a panic in one phase of every request to /path.
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

// A panic, in whatever phase of a request, ends that request only: it is logged once, the client gets a 500
// or a response that is visibly cut off, and nothing is left over.
func TestPanicsInEveryPhase(t *testing.T) {
	for protocol, listen := range map[string]func(*testing.T, *server.Server) (string, *http.Client){
		"HTTP/1": func(t *testing.T, srv *server.Server) (string, *http.Client) { return listenItself(t, srv) },
		"HTTP/2": h2Server,
	} {
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
		h = marked(func(w http.ResponseWriter, _ *server.Request) error {
			_, err := io.WriteString(w, "body")
			return err
		})
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

// statusOf returns the status of a whole response, or 0 if there is none.
func statusOf(t *testing.T, c *http.Client, url string) int {
	res, err := request(t, c, "GET", url)
	if err != nil {
		return 0
	}
	return res.StatusCode
}
