package server_test

import (
	"bytes"
	"context"
	"errors"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/inspect"
)

// nilError panics in Error if the pointer is nil, as a typed nil returned as an error does.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// panickingObserver panics in all of its methods.
type panickingObserver struct{}

func (*panickingObserver) ResolveStart(context.Context, string) context.Context { panic("start") }

func (*panickingObserver) ResolveEnd(context.Context, string, time.Duration, error) { panic("end") }
func (*panickingObserver) RequestEnd(context.Context, server.RequestInfo)           { panic("request") }

// The response and the clean-up are the same as without observers.
func TestObserversDoNotChangeARequest(t *testing.T) {
	inspector, err := inspect.New(inspect.Options{})
	require.NoError(t, err)
	for name, observers := range map[string][]server.Observer{
		"none": nil, "inspector": {inspector}, "panicking": {&panickingObserver{}},
	} {
		t.Run(name, func(t *testing.T) {
			srv, log := newServer(t, server.Options{Observers: observers})
			key := reqctx.NewKey[int]("key")
			closed := 0
			reqctx.Provide(srv.Registry(), key, reqctx.Prop[int]{
				Resolve: func(context.Context) (int, error) { return 1, nil },
				Close:   func(context.Context, int, error) error { closed++; return nil },
			})
			use := func(req *server.Request) error {
				_, err := key.Get(req.Context())
				reqctx.From(req.Context()).OnClose(func() error { closed++; return nil })
				return err
			}
			bad := reqctx.NewKey[int]("bad")
			reqctx.Provide(srv.Registry(), bad, reqctx.Prop[int]{
				Resolve: func(context.Context) (int, error) { return 0, (*nilError)(nil) },
			})
			srv.HandleFunc("GET /error", func(_ http.ResponseWriter, req *server.Request) error {
				require.NoError(t, use(req))
				return (*nilError)(nil)
			})
			srv.HandleFunc("GET /dealt-with", func(w http.ResponseWriter, req *server.Request) error {
				_, err := bad.Get(req.Context())
				require.True(t, err != nil)
				w.WriteHeader(http.StatusOK)
				return use(req)
			})
			for path, status := range map[string]int{"/error": 500, "/dealt-with": 200} {
				closed = 0
				w := httptest.NewRecorder()
				srv.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				require.Equal(t, status, w.Code, path)
				require.Equal(t, 2, closed, path)
			}
			require.NotEmpty(t, log.at("ERROR"))
		})
	}
}

// A handler that a TimeoutHandler has left goes on to parse a form. Its files are removed when it
// returns, on its own goroutine.
func TestFormOfAnAbandonedHandler(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	srv.Use(func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Millisecond, "too slow") })
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "a.txt")
	require.NoError(t, err)
	_, err = part.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, form.Close())
	files := make(chan string, 1)
	srv.HandleFunc("POST /", func(_ http.ResponseWriter, req *server.Request) error {
		<-req.Context().Done()
		if err := req.ParseMultipartForm(1); err != nil {
			close(files)
			return err
		}
		f, err := req.MultipartForm.File["file"][0].Open()
		if err != nil {
			return err
		}
		files <- f.(*os.File).Name()
		return f.Close()
	})
	r := httptest.NewRequest(http.MethodPost, "/", &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, r)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	if name, parsed := <-files; parsed {
		require.Eventually(t, func() bool { _, err := os.Stat(name); return errors.Is(err, os.ErrNotExist) },
			10*time.Second, time.Millisecond)
	}
}

// A task can tell the end of the handler from a client that is gone.
func TestCauseOfATasksEnd(t *testing.T) {
	srv, _ := newServer(t, server.Options{})
	causes := make(chan error, 1)
	srv.HandleFunc("GET /", func(_ http.ResponseWriter, req *server.Request) error {
		return reqctx.From(req.Context()).Go("task", func(ctx context.Context) error {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil
		})
	})
	url, c := listenItself(t, srv)
	_, err := request(t, c, http.MethodGet, url)
	require.NoError(t, err)
	require.ErrorIs(t, <-causes, lazy.ErrClosed)
}
