// Notes is a server to which users upload files. A user can list the devices on which the user is logged in.
// A user may make three requests per second and a thousand per day.
//
//	REDIS_URL=redis://127.0.0.1:6379 go run ./examples/notes   # without the URL, in memory
//
//	curl -c jar -d 'name=ada&password=lovelace' http://127.0.0.1:8080/login
//	curl -b jar -F title=First -F file=@go.mod http://127.0.0.1:8080/notes
//	curl -b jar http://127.0.0.1:8080/sessions
package main

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/ratelimit"
	limitstore "github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
	sessionstore "github.com/lazyreq/lazyreq/session/redisstore"
)

var (
	// User is the user who is logged in. If nobody is logged in, the property is an error that is answered with a
	// 401.
	User = reqctx.NewKey[*user]("user")
	// PerUser limits the requests of each user. Login limits attempts to guess a password.
	PerUser = ratelimit.NewPolicy("user", ratelimit.ByProperty(User, func(u *user) string { return u.Name }),
		ratelimit.PerSecond(3), ratelimit.PerDay(1000))
	Login = ratelimit.NewPolicy("login", ratelimit.ByIP(), ratelimit.PerMinute(10))
)

type user struct{ Name, password string }

// users is a stand-in for a database.
var users = map[string]*user{"ada": {"ada", "lovelace"}, "grace": {"grace", "hopper"}}

func main() {
	srv, err := newServer(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	log.Print("Listening on http://127.0.0.1:8080")
	log.Fatal(srv.ListenAndServe("127.0.0.1:8080"))
}

// newServer returns the server. Sessions and limits are in the Redis at redisURL. If that is empty, they are in
// memory.
func newServer(redisURL string) (*server.Server, error) {
	o := server.Options{
		RateLimits: []*ratelimit.Policy{PerUser, Login},
		Params:     params.Options{Routes: map[string]params.Options{"POST /notes": {MaxFile: 20 << 20, ReadTimeout: 5 * time.Minute}}},
		Session:    session.Options{Cookie: session.Cookie{Insecure: true}}, // this example uses plain HTTP
	}
	if redisURL != "" {
		ro, err := redis.ParseURL(redisURL)
		if err != nil {
			return nil, err
		}
		client := redis.NewClient(ro)
		if o.SessionStore, err = sessionstore.New(client, sessionstore.Options{}); err != nil {
			return nil, err
		}
		if o.RateLimitStore, err = limitstore.New(client, limitstore.Options{}); err != nil {
			return nil, err
		}
	}
	srv, err := server.New(o)
	if err != nil {
		return nil, err
	}
	reqctx.Provide(srv.Registry(), User, reqctx.Prop[*user]{Resolve: func(ctx context.Context) (*user, error) {
		name, err := session.RequireUser(ctx)
		u, ok := users[name]
		if err == nil && !ok {
			err = session.ErrNotBound // the account has been deleted
		}
		return u, err
	}})
	limited := server.Require(PerUser)
	srv.HandleFunc("POST /login", login, server.Require(Login))
	srv.HandleFunc("POST /logout", func(_ http.ResponseWriter, req *server.Request) error { return req.Session().Destroy() })
	srv.HandleFunc("GET /sessions", listSessions, limited)
	srv.HandleFunc("DELETE /sessions/{id}", revokeSession, limited)
	srv.HandleFunc("POST /notes", addNote, limited)
	return srv, nil
}

func login(_ http.ResponseWriter, req *server.Request) error {
	in, err := params.Bind[struct {
		Name     string `form:"name" required:"true"`
		Password string `form:"password" required:"true"`
	}](req)
	if err != nil {
		return err
	}
	if u, ok := users[in.Name]; !ok || u.password != in.Password {
		return server.Errorf(http.StatusForbidden, "The name or the password is wrong.")
	}
	return req.Session().Bind(in.Name)
}

func listSessions(w http.ResponseWriter, req *server.Request) error {
	sessions, err := req.Session().List()
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, sessions)
}

func revokeSession(_ http.ResponseWriter, req *server.Request) error {
	return req.Session().Revoke(req.PathValue("id"))
}

func addNote(w http.ResponseWriter, req *server.Request) error {
	u, _ := User.Get(req) // there is no error, since the limit has already read the user
	in, err := params.Bind[struct {
		Title string       `form:"title"`
		File  *params.File `form:"file" required:"true"`
	}](req)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp("", "note-"+u.Name+"-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in.File.Open())
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	note := map[string]any{"owner": u.Name, "title": in.Title, "file": in.File.FileName, "size": in.File.Size}
	return server.WriteJSON(w, http.StatusCreated, note)
}
