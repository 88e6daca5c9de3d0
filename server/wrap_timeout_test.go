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
	"github.com/lazyreq/lazyreq/session"
)

// A TimeoutHandler answers while the handler still runs, on a goroutine of its own.
// Nothing that it does then reaches the response or the session.
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

// The same with everything at once, for the race detector: the handler fails, or
// panics, just when the time is over, and the commit fails too.
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
