package server_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/internal/testhost"
	"github.com/lazyreq/lazyreq/ratelimit"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	sessionstore "github.com/lazyreq/lazyreq/session/redisstore"
)

var (
	taskUser  = reqctx.NewKey[string]("task.user")
	taskFlags = reqctx.NewKey[string]("task.flags")
)

// withTasks registers a handler that runs so many tasks, which end with the request: heartbeats.
// h begins once all of them run.
func withTasks(srv *server.Server, pattern string, tasks int, h server.HandlerFunc) {
	srv.HandleFunc(pattern, func(w http.ResponseWriter, req *server.Request) error {
		var begun sync.WaitGroup
		begun.Add(tasks)
		for range tasks {
			req.Go("heartbeat", func(ctx context.Context) error {
				begun.Done()
				<-ctx.Done()
				return nil
			})
		}
		begun.Wait()
		return h(w, req)
	})
}

// taskHandlers are what a request does beside its tasks.
var taskHandlers = map[string]server.HandlerFunc{
	"read": func(_ http.ResponseWriter, req *server.Request) error {
		_, err := req.Session().Get("user")
		return err
	},
	"write": func(_ http.ResponseWriter, req *server.Request) error { return req.Session().Set("n", 1) },
	"take":  func(_ http.ResponseWriter, req *server.Request) error { return plentyPolicy.Require(req.Context()) },
	"take in a task": func(_ http.ResponseWriter, req *server.Request) error {
		done := make(chan error, 1)
		req.Go("take", func(context.Context) error {
			_, err := plentyPolicy.Take(req.Context()) // without the task's context
			done <- err
			return err
		})
		return <-done
	},
	"resolve": func(_ http.ResponseWriter, req *server.Request) error { return req.Resolve("task.user", "task.flags") },
	"by session": func(_ http.ResponseWriter, req *server.Request) error {
		if err := minePolicy.Start(req.Context()); err != nil {
			return err
		}
		if err := req.Resolve("task.user"); err != nil {
			return err
		}
		return minePolicy.Require(req.Context())
	},
	"logout": func(_ http.ResponseWriter, req *server.Request) error { return req.Session().Destroy() },
}

var (
	plentyPolicy = ratelimit.NewPolicy("plenty", ratelimit.ByIP(), ratelimit.PerMinute(1<<40))
	minePolicy   = ratelimit.NewPolicy("mine", server.BySession(), ratelimit.PerMinute(1<<40))
)

// newTasked returns a server on Redis whose stores wait for a second. task.user reads the session
// without a context, task.flags under a timeout.
func newTasked(tb testing.TB) *server.Server {
	client := testhost.StartRedis(tb).Client(nil)
	sessions, err := sessionstore.New(client, sessionstore.Options{Timeout: time.Second})
	require.NoError(tb, err)
	counters, err := ratestore.New(client, ratestore.Options{Timeout: time.Second})
	require.NoError(tb, err)
	srv, _ := newServer(tb, server.Options{
		Session: session.Options{Cookie: session.Cookie{Insecure: true}}, SessionStore: sessions,
		RateLimits:     []*ratelimit.Policy{plentyPolicy, minePolicy},
		RateLimitStore: counters,
	})
	reqctx.Provide(srv.Registry(), taskUser, reqctx.Prop[string]{Resolve: func(ctx context.Context) (string, error) {
		s, err := session.From(reqctx.From(ctx))
		if err != nil {
			return "", err
		}
		user, err := s.Get("user")
		return fmt.Sprint(user), err
	}})
	reqctx.Provide(srv.Registry(), taskFlags, reqctx.Prop[string]{
		Timeout: time.Second,
		Resolve: func(ctx context.Context) (string, error) {
			s, err := session.From(ctx)
			if err != nil {
				return "", err
			}
			user, err := s.Get("user")
			return fmt.Sprint(user), err
		},
	})
	srv.HandleFunc("POST /login", func(_ http.ResponseWriter, req *server.Request) error {
		return req.Session().Set("user", "ada")
	})
	return srv
}

func loginTo(tb testing.TB, srv http.Handler) *http.Cookie {
	res := ask(srv, "POST", "/login")
	require.Equal(tb, http.StatusOK, res.StatusCode)
	require.Len(tb, res.Cookies(), 1)
	return res.Cookies()[0]
}

// TestTasksDelayNoResponse has a request's tasks run until it ends, while it uses Redis.
func TestTasksDelayNoResponse(t *testing.T) {
	srv := newTasked(t)
	for name, h := range taskHandlers {
		withTasks(srv, "POST /"+slug(name), 3, h)
	}
	srv.HandleFunc("GET /exists", func(w http.ResponseWriter, req *server.Request) error {
		exists, err := req.Session().Exists()
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(w, exists)
		return err
	})
	for name := range taskHandlers {
		cookie := loginTo(t, srv)
		res := askAs(srv, cookie, "POST", "/"+slug(name))
		require.Equal(t, http.StatusOK, res.StatusCode, "%s: %s", name, res.body)
		require.Equal(t, fmt.Sprint(name != "logout"), askAs(srv, cookie, "GET", "/exists").body, name)
	}
}

func slug(name string) string { return fmt.Sprintf("%x", name) }

// BenchmarkBesideTasks shows how long a request's operations take on Redis while ten tasks of it
// run, against the same without tasks, in turn: from the operation to the response's header, with
// which the session is saved; medians; -benchtime=50x.
func BenchmarkBesideTasks(b *testing.B) {
	srv := newTasked(b)
	took := map[string][]time.Duration{}
	timed := func(side string, h server.HandlerFunc) server.HandlerFunc {
		return func(w http.ResponseWriter, req *server.Request) error {
			began := time.Now()
			err := h(w, req)
			if err == nil {
				w.WriteHeader(http.StatusOK)
			}
			took[side] = append(took[side], time.Since(began))
			return err
		}
	}
	for name, h := range taskHandlers {
		withTasks(srv, "POST /with/"+slug(name), 10, timed("with", h))
		withTasks(srv, "POST /without/"+slug(name), 0, timed("without", h))
	}
	for name := range taskHandlers {
		b.Run(name, func(b *testing.B) {
			clear(took)
			for b.Loop() {
				for _, side := range []string{"with", "without"} {
					res := askAs(srv, loginTo(b, srv), "POST", "/"+side+"/"+slug(name))
					require.Equal(b, http.StatusOK, res.StatusCode, res.body)
				}
			}
			median := func(side string) float64 {
				slices.Sort(took[side])
				return float64(took[side][len(took[side])/2])
			}
			b.ReportMetric(median("with")/1000, "µs")
			b.ReportMetric(median("with")/median("without"), "x-without")
		})
	}
}
