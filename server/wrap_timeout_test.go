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

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// A TimeoutHandler answers while the handler still runs on another goroutine. After that, nothing that the handler
// does reaches the response or the session.
func TestWrapUnderAnExpiredTimeout(t *testing.T) {
	for name, build := range map[string]func(srv *server.Server, h http.Handler) http.Handler{
		"within": func(srv *server.Server, h http.Handler) http.Handler {
			return srv.Wrap(http.TimeoutHandler(h, time.Millisecond, "too slow"))
		},
		"between": func(srv *server.Server, h http.Handler) http.Handler {
			return srv.Wrap(http.TimeoutHandler(srv.Wrap(h), time.Millisecond, "too slow"))
		},
		"around": func(srv *server.Server, h http.Handler) http.Handler {
			return http.TimeoutHandler(srv.Wrap(h), time.Millisecond, "too slow")
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv, l := newServer(t, plainCookies)
			answered, over := make(chan struct{}), make(chan struct{})
			late := make(chan error, 2)
			url, c := listen(t, build(srv, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(over)
				s, err := session.From(r.Context())
				require.NoError(t, err)
				require.NoError(t, s.Set("early", 1))
				<-answered
				late <- s.Set("late", 1)
				w.Header().Set("X-Late", "1")
				_, err = io.WriteString(w, "late")
				late <- err
			})))
			res, err := request(t, c, "GET", url)
			require.NoError(t, err)
			require.Equal(t, 503, res.StatusCode)
			require.Equal(t, "too slow", res.body)
			require.Empty(t, res.Header["X-Late"])
			if name == "around" {
				require.Empty(t, res.Cookies(), "what is in it was not answered")
			} else {
				require.Len(t, res.Header["Set-Cookie"], 1)
			}
			close(answered)
			<-over
			errSet, errWrite := <-late, <-late
			require.NoError(t, srv.Shutdown(t.Context()))
			require.Error(t, errWrite)
			if name == "around" { // the server was not told; its commit came too late
				require.Contains(t, l.only(t)["error"], context.DeadlineExceeded.Error())
				return
			}
			require.ErrorIs(t, errWrite, http.ErrHandlerTimeout)
			require.True(t, errors.Is(errSet, reqctx.ErrCommitted) || errors.Is(errSet, reqctx.ErrFinished), "%v", errSet)
			require.Empty(t, l.at("ERROR"))
		})
	}
}

// TestWrapUnderATimeoutRaces is for the race detector: handlers fail or write just when the time is over, and
// commits fail, too.
func TestWrapUnderATimeoutRaces(t *testing.T) {
	for name, fail := range map[string]bool{"commit": false, "failed commit": true} {
		t.Run(name, func(t *testing.T) {
			srv, _ := newServer(t, server.Options{})
			if fail {
				unsaved(srv, errSave)
			} else {
				provideMark(srv)
			}
			srv.HandleFunc("GET /error", marked(func(_ http.ResponseWriter, req *server.Request) error {
				<-req.Context().Done()
				return errSave
			}))
			srv.HandleFunc("GET /write", marked(func(w http.ResponseWriter, req *server.Request) error {
				<-req.Context().Done()
				w.Header().Set("X-Late", "1")
				_, _ = io.WriteString(w, "late")
				return http.NewResponseController(w).Flush()
			}))
			h := srv.Wrap(through(http.TimeoutHandler(srv, time.Millisecond, "too slow")))
			url, c := listen(t, h)
			concurrently(8, func(i int) {
				for range 5 {
					res, err := request(t, c, "GET", url+[]string{"/error", "/write"}[i%2])
					if err != nil || res.StatusCode != 503 && res.StatusCode != 500 {
						t.Error(res, err)
					}
				}
			})
			require.NoError(t, srv.Shutdown(t.Context()))
		})
	}
}

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

// impatient returns a server with a TimeoutHandler of one millisecond.
func impatient(t *testing.T, o server.Options) *server.Server {
	srv, _ := newServer(t, o)
	srv.Use(func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Millisecond, "too slow") })
	return srv
}

// A handler parses a form after a TimeoutHandler has answered. When the handler returns, the form's files are
// removed.
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
	w := send(srv, uploadForm(t, "/"))
	require.Equal(t, http.StatusServiceUnavailable, w.StatusCode)
	if name, parsed := <-files; parsed {
		require.Eventually(t, func() bool { _, err := os.Stat(name); return errors.Is(err, os.ErrNotExist) },
			10*time.Second, time.Millisecond)
	}
}

// patterns is an observer that sends the pattern of each request to ended.
type patterns struct{ ended chan string }

func (p patterns) RequestEnd(_ context.Context, info server.RequestInfo) { p.ended <- info.Pattern }

// TestAbandonedHandlersWriteToTheirRequest is for the race detector: at the end of a request, the server does not
// read fields that an abandoned handler may still write.
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
