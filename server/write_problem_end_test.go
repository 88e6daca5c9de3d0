package server_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/server"
)

// Nothing is left over of a request whose error response ends the goroutine.
func TestWriteProblemThatExitsAfterAPanic(t *testing.T) {
	for protocol, listen := range protocols {
		t.Run(protocol, func(t *testing.T) {
			o := &watcher{}
			srv, _ := newServer(t, server.Options{
				Observers:    []server.Observer{o},
				WriteProblem: func(http.ResponseWriter, *http.Request, *server.Problem) { exit() },
			})
			closed := make(chan struct{})
			srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
				req.OnClose(func() error { close(closed); return nil })
				panic("boom")
			})
			url, c := listen(t, srv)
			_, err := request(t, c, "GET", url)
			require.Error(t, err)
			<-closed
			seen := o.last(t)
			require.True(t, seen.CutOff)
			require.ErrorAs(t, seen.Err, new(*lazy.PanicError))
		})
	}
}

// A panic stays one, also if WriteProblem answers it with WriteError.
func TestObserverOfAnErrorInWriteProblem(t *testing.T) {
	for path, want := range map[string]any{"/panic": new(*lazy.PanicError), "/elsewhere": nil} {
		o := &watcher{}
		srv, _ := newServer(t, server.Options{
			Observers:    []server.Observer{o},
			WriteProblem: func(w http.ResponseWriter, r *http.Request, p *server.Problem) { server.WriteError(w, r, p) },
		})
		srv.HandleFunc("GET /panic", func(http.ResponseWriter, *server.Request) error { panic("boom") })
		ask(srv, "GET", path)
		if seen := o.last(t); want != nil {
			require.ErrorAs(t, seen.Err, want)
		} else {
			require.NoError(t, seen.Err)
		}
	}
}

// The response of a middleware is complete, also if it answers while WriteProblem runs for a handler that
// it has left.
func TestWriteErrorInWriteProblemOfAnAbandonedHandler(t *testing.T) {
	begun, answered, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	o := &watcher{}
	srv, l := newServer(t, server.Options{Observers: []server.Observer{o}, WriteProblem: func(w http.ResponseWriter, r *http.Request, p *server.Problem) {
		close(begun)
		<-answered
		server.WriteError(w, r, p)
	}})
	srv.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			go func() {
				defer close(ended)
				next.ServeHTTP(httptest.NewRecorder(), r)
			}()
			<-begun
			_ = writeText(w, "too slow")
			close(answered)
			<-ended
		})
	})
	srv.HandleFunc("GET /", func(http.ResponseWriter, *server.Request) error { return server.Errorf(410, "") })
	require.Equal(t, "too slow", ask(srv, "GET", "/").body)
	require.False(t, o.last(t).CutOff)
	require.Empty(t, l.at(""))
}
