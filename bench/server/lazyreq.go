package server

import (
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/ratelimit"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	sessionstore "github.com/lazyreq/lazyreq/session/redisstore"
)

var userInSession = session.NewField[string](userField)

// openLazy is ours: no middleware, handlers that read what they need.
func openLazy(addr string) (http.Handler, error) {
	client := newRedis(addr)
	sessions, err := sessionstore.New(client, sessionstore.Options{Timeout: 5 * time.Second}) // the machine may be busy
	if err != nil {
		return nil, err
	}
	counters, err := ratestore.New(client, ratestore.Options{Timeout: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	srv, err := server.New(server.Options{
		SessionStore:   sessions,
		RateLimits:     []*ratelimit.Policy{ratelimit.NewPolicy("api", ratelimit.ByIP(), ratelimit.PerMinute(perMinute))},
		RateLimitStore: counters,
	})
	if err != nil {
		return nil, err
	}
	srv.HandleFunc("POST /login", func(w http.ResponseWriter, req *server.Request) error {
		return userInSession.Set(req.Context(), user)
	})
	srv.HandleFunc("GET /light", func(w http.ResponseWriter, _ *server.Request) error { return lightPage.write(w) })
	srv.HandleFunc("GET /full", lazyFull)
	return srv, nil
}

func lazyFull(w http.ResponseWriter, req *server.Request) error {
	if err := req.RateLimit().Require(); err != nil {
		return err
	}
	name, err := userInSession.Get(req.Context())
	if err != nil {
		return err
	}
	q, err := req.Params().Query().String("q")
	if err != nil {
		return err
	}
	return page{name, q}.write(w)
}

// newRedis returns a client such as all stacks have that use go-redis.
func newRedis(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, Protocol: 2, DisableIdentity: true, PoolSize: poolSize,
	})
}
