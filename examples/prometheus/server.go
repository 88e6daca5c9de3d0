package main

import (
	"context"
	"fmt"
	"net/http"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

var (
	name    = session.NewField[string]("name")
	visits  = session.NewCounter("visits")
	account = reqctx.NewKey[string]("account")
	profile = ratelimit.NewPolicy("profile", ratelimit.ByHeader("X-Api-Key"), ratelimit.PerMinute(5))
)

// newServer returns a server whose requests are measured.
func newServer(st *stores, meters *sdkmetric.MeterProvider) (*server.Server, error) {
	observer, middleware, err := newObserver(meters)
	if err != nil {
		return nil, err
	}
	srv, err := server.New(server.Options{
		Observers:      []server.Observer{observer},
		Session:        session.Options{Cookie: session.Cookie{Insecure: true}}, // this example uses plain HTTP
		SessionStore:   st.sessions,
		RateLimitStore: st.limits,
		RateLimits:     []*ratelimit.Policy{profile},
	})
	if err != nil {
		return nil, err
	}
	srv.Use(middleware)
	reqctx.Provide(srv.Registry(), account, reqctx.Prop[string]{Resolve: func(ctx context.Context) (string, error) {
		user, err := name.Get(ctx) // this loads the session
		if err == nil && user == "" {
			return "", session.ErrNotBound
		}
		return "account of " + user, err
	}})
	srv.HandleFunc("GET /users/{name}", func(_ http.ResponseWriter, req *server.Request) error {
		return name.Set(req, req.PathValue("name"))
	})
	srv.HandleFunc("GET /profile", func(w http.ResponseWriter, req *server.Request) error {
		text, err := account.Get(req)
		if err != nil {
			return err
		}
		if err := visits.Add(req, 1); err != nil {
			return err
		}
		_, err = fmt.Fprintln(w, text)
		return err
	}, server.Require(profile))
	srv.HandleFunc("GET /fast", func(w http.ResponseWriter, _ *server.Request) error {
		_, err := fmt.Fprintln(w, "nothing was resolved")
		return err
	})
	return srv, nil
}
