package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/lazy"
	"github.com/lazyreq/lazyreq/ratelimit"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	sessionstore "github.com/lazyreq/lazyreq/session/redisstore"
)

// Tasks that run until the end of their request do not delay the response, even if the handler uses Redis. The
// stores give up after a second.
func TestTasksDelayNoResponse(t *testing.T) {
	client := testhost.StartRedis(t).Client(nil)
	sessions, err := sessionstore.New(client, sessionstore.Options{Timeout: time.Second})
	require.NoError(t, err)
	counters, err := ratestore.New(client, ratestore.Options{Timeout: time.Second})
	require.NoError(t, err)
	mine := ratelimit.NewPolicy("mine", server.BySession(), ratelimit.PerMinute(1<<40))
	srv, _ := newServer(t, server.Options{
		Session: plainCookies.Session, SessionStore: sessions,
		RateLimits: []*ratelimit.Policy{plentyPolicy, mine}, RateLimitStore: counters,
	})
	user := func(ctx context.Context) (string, error) {
		s, err := session.From(ctx)
		if err != nil {
			return "", err
		}
		user, err := s.Get("user")
		return fmt.Sprint(user), err
	}
	reqctx.Provide(srv.Registry(), reqctx.NewKey[string]("user"), reqctx.Prop[string]{
		Resolve: func(ctx context.Context) (string, error) { return user(reqctx.From(ctx)) }, // without the context of the resolution
	})
	reqctx.Provide(srv.Registry(), reqctx.NewKey[string]("flags"), reqctx.Prop[string]{Timeout: time.Second, Resolve: user})
	for name, h := range map[string]func(req *server.Request) error{
		"read":  func(req *server.Request) error { _, err := req.Session().Get("user"); return err },
		"write": func(req *server.Request) error { return req.Session().Set("n", 1) },
		"take":  func(req *server.Request) error { return plentyPolicy.Require(req) },
		"take-in-a-task": func(req *server.Request) error {
			done := make(chan error, 1)
			_ = req.Go("take", func(context.Context) error {
				done <- plentyPolicy.Require(req) // without the task's context
				return nil
			})
			return <-done
		},
		"resolve": func(req *server.Request) error { return req.Resolve("user", "flags") },
		"by-session": func(req *server.Request) error {
			return errors.Join(mine.Start(req), req.Resolve("user"), mine.Require(req))
		},
		"logout": func(req *server.Request) error { return req.Session().Destroy() },
	} {
		srv.HandleFunc("POST /"+name, func(_ http.ResponseWriter, req *server.Request) error {
			begun := make(chan bool)
			for range 3 {
				_ = req.Go("heartbeat", func(ctx context.Context) error { begun <- true; <-ctx.Done(); return nil })
				<-begun
			}
			return h(req)
		})
		srv.HandleFunc("POST /login/"+name, func(_ http.ResponseWriter, req *server.Request) error { return req.Session().Set("user", "ada") })
		res := askAs(srv, ask(srv, "POST", "/login/"+name).Cookies()[0], "POST", "/"+name)
		require.Equal(t, http.StatusOK, res.StatusCode, "%s: %s", name, res.body)
	}
}

// A task can distinguish the end of the handler from a client that has left.
func TestCauseOfATasksEnd(t *testing.T) {
	for name, c := range map[string]struct {
		major int
		serve func(tb testing.TB, srv *server.Server) (string, *http.Client)
	}{
		"own":           {1, listenItself},
		"own, HTTP/2":   {2, h2Server},
		"other":         {1, inAnother("HTTP/1")},
		"other, HTTP/2": {2, inAnother("HTTP/2")},
	} {
		t.Run(name, func(t *testing.T) {
			srv, _ := newServer(t, server.Options{})
			causes, begun := make(chan error, 1), make(chan int, 1)
			task := func(req *server.Request) error {
				running := make(chan struct{})
				defer func() { <-running; begun <- req.ProtoMajor }()
				return req.Go("task", func(ctx context.Context) error {
					close(running)
					<-ctx.Done()
					causes <- context.Cause(ctx)
					return nil
				})
			}
			srv.HandleFunc("GET /return", func(_ http.ResponseWriter, req *server.Request) error { return task(req) })
			srv.HandleFunc("GET /panic", func(_ http.ResponseWriter, req *server.Request) error { panic(task(req)) })
			srv.HandleFunc("GET /wait", func(_ http.ResponseWriter, req *server.Request) error {
				err := task(req)
				<-req.Context().Done()
				return err
			})
			url, client := c.serve(t, srv)
			for _, path := range []string{"/return", "/panic"} {
				_, err := request(t, client, http.MethodGet, url+path)
				require.NoError(t, err)
				require.Equal(t, c.major, <-begun)
				require.Equal(t, lazy.ErrClosed, <-causes, path)
			}
			entered := make(chan struct{})
			go func() { <-begun; close(entered) }()
			leave(t, client, httptest.NewRequest("GET", url+"/wait", nil), entered)
			require.Equal(t, context.Canceled, <-causes)
		})
	}
}

// inAnother returns a function that serves a server within another http.Server.
func inAnother(protocol string) func(testing.TB, *server.Server) (string, *http.Client) {
	return func(tb testing.TB, srv *server.Server) (string, *http.Client) { return protocols[protocol](tb, srv) }
}
