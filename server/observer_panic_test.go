package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
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
		srv.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	}()
	<-ended
	require.Len(t, closed, 1)
	require.Equal(t, lazy.ErrGoexit.Error(), l.only(t)["panic"])
}

type exitingObserver struct{}

func (exitingObserver) RequestEnd(context.Context, server.RequestInfo) { runtime.Goexit() }
