package prefetch

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/bench/rig"
	"github.com/lazyreq/lazyreq/ratelimit"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	"github.com/lazyreq/lazyreq/session/redisstore"
)

var (
	user    = session.NewField[string]("user")
	account = reqctx.NewKey[string]("account")
	flags   = reqctx.NewKey[string]("flags")
	viewer  = reqctx.NewKey[string]("viewer")
	search  = ratelimit.NewPolicy("search", ratelimit.ByIP(), ratelimit.FixedWindow(1<<40, time.Minute))
)

// route is a way to serve the route that reads all.
type route struct {
	name, path string
	options    []server.RouteOption
	handler    server.HandlerFunc
}

var routes = []route{
	{"lazyreq", "/prefetch", []server.RouteOption{server.Prefetch(session.Loaded, account, flags)}, readAll},
	{"lazy", "/lazy", nil, readAll},
	{"by hand", "/parallel", nil, func(w http.ResponseWriter, req *server.Request) error {
		if err := req.Resolve("session", "account", "flags"); err != nil {
			return err
		}
		return readAll(w, req)
	}},
}

// requiring are routes that require a session, a policy and a property that reads the session and then
// asks Redis, together and each alone.
var requiring = []route{
	{"lazyreq", "/required", []server.RouteOption{server.Require(session.Loaded, search, viewer)}, writeAll},
	{"session", "/session", []server.RouteOption{server.Require(session.Loaded)}, writeAll},
	{"policy", "/policy", []server.RouteOption{server.Require(search)}, writeAll},
	{"property", "/property", []server.RouteOption{server.Require(viewer)}, writeAll},
}

func writeAll(w http.ResponseWriter, _ *server.Request) error {
	_, err := io.WriteString(w, all)
	return err
}

// readAll reads the properties one after another.
func readAll(w http.ResponseWriter, req *server.Request) error {
	ctx := req.Context()
	name, err := user.Get(ctx)
	if err != nil {
		return err
	}
	a, err := account.Get(ctx)
	if err != nil {
		return err
	}
	f, err := flags.Get(ctx)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, name+" "+a+" "+f)
	return err
}

const all = "ada account flags"

// after returns a property that takes as long as a call to another service.
func after(v string) reqctx.Prop[string] {
	return reqctx.Prop[string]{Resolve: func(ctx context.Context) (string, error) {
		timer := time.NewTimer(propertyLatency)
		defer timer.Stop()
		select {
		case <-timer.C:
			return v, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}}
}

// newServer returns a server with sessions on the Redis at addr, and these routes besides
// POST /login and GET /light.
func newServer(addr string, routes []route) (*server.Server, *redis.Client, error) {
	client := rig.NewClient(addr, 0)
	store, err := redisstore.New(client, redisstore.Options{Timeout: 5 * time.Second}) // the machine may be busy
	if err != nil {
		return nil, nil, err
	}
	limits, err := ratestore.New(client, ratestore.Options{Timeout: 5 * time.Second})
	if err != nil {
		return nil, nil, err
	}
	srv, err := server.New(server.Options{
		SessionStore: store, RateLimitStore: limits, RateLimits: []*ratelimit.Policy{search},
	})
	if err != nil {
		return nil, nil, err
	}
	reqctx.Provide(srv.Registry(), account, after("account"))
	reqctx.Provide(srv.Registry(), flags, after("flags"))
	reqctx.Provide(srv.Registry(), viewer, reqctx.Prop[string]{Resolve: func(ctx context.Context) (string, error) {
		name, err := user.Get(ctx)
		if err != nil {
			return "", err
		}
		return name, client.Exists(ctx, "user:"+name).Err()
	}})
	srv.HandleFunc("POST /login", func(_ http.ResponseWriter, req *server.Request) error {
		return user.Set(req.Context(), "ada")
	})
	srv.HandleFunc("GET /light", func(w http.ResponseWriter, _ *server.Request) error {
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	for _, r := range routes {
		srv.HandleFunc("GET "+r.path, r.handler, r.options...)
	}
	return srv, client, nil
}
