package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/server"
)

// uploadForm returns a form with a file that ParseMultipartForm(1) puts on disk.
func uploadForm(t *testing.T, target string) *http.Request {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "a.txt")
	require.NoError(t, err)
	_, err = part.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, form.Close())
	r := httptest.NewRequest(http.MethodPost, target, &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return r
}

// impatient returns a server whose handlers are left after a millisecond, by a middleware.
func impatient(t *testing.T, o server.Options) *server.Server {
	srv, _ := newServer(t, o)
	srv.Use(func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Millisecond, "too slow") })
	return srv
}

// A handler that a TimeoutHandler has left goes on to parse a form. Its files are removed when it
// returns, on its own goroutine.
func TestFormOfAnAbandonedHandler(t *testing.T) {
	srv := impatient(t, server.Options{})
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
	w := httptest.NewRecorder()
	srv.ServeHTTP(w, uploadForm(t, "/"))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	if name, parsed := <-files; parsed {
		require.Eventually(t, func() bool { _, err := os.Stat(name); return errors.Is(err, os.ErrNotExist) },
			10*time.Second, time.Millisecond)
	}
}

// patterns is an observer that keeps the patterns of requests.
type patterns struct{ ended chan string }

func (p patterns) RequestEnd(_ context.Context, info server.RequestInfo) { p.ended <- info.Pattern }

// The end of a request does not read what an abandoned handler writes to its copy of the request,
// for the race detector: its forms, its path values, and its pattern if a mux is mounted.
func TestAbandonedHandlersWriteToTheirRequest(t *testing.T) {
	writes := map[string]func(r *http.Request){
		"form":      func(r *http.Request) { _ = r.ParseForm() },
		"multipart": func(r *http.Request) { _ = r.ParseMultipartForm(1) },
		"reader": func(r *http.Request) {
			if form, err := r.MultipartReader(); err == nil {
				for part, err := form.NextPart(); err == nil; part, err = form.NextPart() {
					_, _ = io.Copy(io.Discard, part)
				}
			}
		},
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			seen := patterns{ended: make(chan string, 2)}
			srv := impatient(t, server.Options{Observers: []server.Observer{seen}})
			left, over := make(chan struct{}, 1), make(chan struct{})
			h := func(r *http.Request) {
				<-left
				write(r)
				r.SetPathValue("a", "b")
				over <- struct{}{}
			}
			inner := http.NewServeMux()
			inner.HandleFunc("POST /mounted/form", func(_ http.ResponseWriter, r *http.Request) { h(r) })
			srv.Handle("/mounted/", inner)
			srv.HandleFunc("POST /form", func(_ http.ResponseWriter, req *server.Request) error { h(req.Request); return nil })
			for target, pattern := range map[string]string{"/form": "POST /form", "/mounted/form": "/mounted/"} {
				w := httptest.NewRecorder()
				srv.ServeHTTP(w, uploadForm(t, target))
				left <- struct{}{}
				require.Equal(t, http.StatusServiceUnavailable, w.Code)
				require.Contains(t, []string{pattern, ""}, <-seen.ended, "it may be left before it is routed")
				<-over
			}
			left <- struct{}{} // this handler may return in time
			w := httptest.NewRecorder()
			go func() { <-over }()
			srv.ServeHTTP(w, uploadForm(t, "/mounted/form"))
			require.Contains(t, []string{"POST /mounted/form", "/mounted/", ""}, <-seen.ended)
		})
	}
}
