package main

import (
	"fmt"
	"log"
	"net/http"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

func main() {
	srv, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(srv.ListenAndServe("127.0.0.1:8080"))
}

var (
	Uploads = ratelimit.NewPolicy("uploads", byUser, ratelimit.PerMinute(3), ratelimit.PerDay(100))
	Logins  = ratelimit.NewPolicy("logins", ratelimit.ByIP(), ratelimit.PerMinute(10))

	byUser = ratelimit.ByProperty(User, func(a *Account) string { return a.ID })
)

func newServer() (*server.Server, error) {
	srv, err := server.New(server.Options{
		RateLimits:   []*ratelimit.Policy{Uploads, Logins},
		ServerTiming: true,
		Session:      session.Options{Cookie: session.Cookie{Insecure: true}}, // no HTTPS yet
		Params: params.Options{Routes: map[string]params.Options{
			"POST /photos": {MaxFile: 1 << 20}, // bytes
		}},
	})
	if err != nil {
		return nil, err
	}
	reqctx.Provide(srv.Registry(), User, reqctx.Prop[*Account]{Resolve: loadUser})
	srv.HandleFunc("GET /hello", hello)
	srv.HandleFunc("POST /login", login, server.Require(Logins))
	srv.HandleFunc("POST /logout", logout)
	srv.HandleFunc("GET /me", me)
	srv.HandleFunc("POST /photos", addPhoto, server.Require(Uploads))
	return srv, nil
}

func hello(w http.ResponseWriter, req *server.Request) error {
	name, err := req.Params().String("name")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "Hello, %s!\n", name)
	return err
}
