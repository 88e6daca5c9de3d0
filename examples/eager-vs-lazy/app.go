package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	limitstore "github.com/lazyreq/lazyreq/ratelimit/memstore"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	sessionstore "github.com/lazyreq/lazyreq/session/memstore"
	"github.com/lazyreq/lazyreq/session/storage"
)

var (
	comments = session.NewCounter("comments")
	perUser  = ratelimit.NewPolicy("user", ratelimit.ByIP(), ratelimit.PerMinute(1_000_000))
)

// newServer returns the application. The eager variant uses the same handlers. There, middleware has already resolved
// what they read.
func newServer(st *stores) (*server.Server, error) {
	srv, err := server.New(server.Options{
		SessionStore:   sessions{st.sessions, st},
		RateLimitStore: limits{st.limits, st},
		RateLimits:     []*ratelimit.Policy{perUser},
	})
	if err != nil {
		return nil, err
	}
	srv.HandleFunc("POST /login", func(_ http.ResponseWriter, req *server.Request) error { return req.Session().Bind("ada") })
	srv.HandleFunc("GET /articles/{id}", func(w http.ResponseWriter, req *server.Request) error {
		_, err := fmt.Fprintln(w, "article", req.PathValue("id"))
		return err
	})
	srv.HandleFunc("GET /me", func(w http.ResponseWriter, req *server.Request) error {
		user, err := req.Session().User()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(w, "you are", user)
		return err
	})
	srv.HandleFunc("GET /search", func(w http.ResponseWriter, req *server.Request) error {
		q, err := req.Params().Query().String("q")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(w, "nothing found for", q)
		return err
	}, server.Require(perUser))
	srv.HandleFunc("POST /comments", func(w http.ResponseWriter, req *server.Request) error {
		text, err := req.Params().Form().String("text")
		if err != nil {
			return err
		}
		if err := comments.Add(req, 1); err != nil {
			return err
		}
		_, err = fmt.Fprintln(w, "you wrote:", text)
		return err
	}, server.Require(perUser))
	return srv, nil
}

// Each of these middlewares does its work for every request, because the handler might need the result.
var (
	loadSession = server.Requiring(session.Loaded)
	takeLimit   = server.Requiring(perUser)
)

func parseParams(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := params.Of(r)
		if err == nil {
			_, err = p.Query().StringOr("q", "")
		}
		if err == nil && r.ContentLength != 0 {
			_, err = p.Form().StringOr("text", "")
		}
		if err != nil {
			server.WriteError(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// stores keeps sessions and counters in memory. Each call is counted, and takes the duration latency.
type stores struct {
	sessions session.Store
	limits   ratelimit.Store
	latency  time.Duration
	calls    atomic.Int64
}

func newStores(latency time.Duration) (st *stores, err error) {
	st = &stores{latency: latency}
	if st.sessions, err = sessionstore.New(sessionstore.Options{}); err != nil {
		return nil, err
	}
	st.limits, err = limitstore.New(limitstore.Options{})
	return st, err
}

func (st *stores) call() {
	st.calls.Add(1)
	if st.latency > 0 {
		time.Sleep(st.latency)
	}
}

type sessions struct {
	session.Store
	*stores
}

func (s sessions) Load(ctx context.Context, l storage.Locator, d storage.Digest, lim storage.Limits) (storage.Record, error) {
	s.call()
	return s.Store.Load(ctx, l, d, lim)
}

func (s sessions) Commit(ctx context.Context, d storage.Delta) error {
	s.call()
	return s.Store.Commit(ctx, d)
}

type limits struct {
	ratelimit.Store
	*stores
}

func (l limits) Do(ctx context.Context, ops []ratelimit.Op) ([]ratelimit.Result, error) {
	l.call()
	return l.Store.Do(ctx, ops)
}

func (l limits) DoOne(ctx context.Context, op ratelimit.Op) (ratelimit.Result, error) {
	l.call()
	return l.Store.DoOne(ctx, op)
}
