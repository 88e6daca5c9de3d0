package server_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// The handler reads a session and an account one after another. The route starts both at once, so
// that a request waits for the longer one only.
func ExamplePrefetch() {
	srv, err := server.New(server.Options{})
	if err != nil {
		log.Fatal(err)
	}
	account := reqctx.NewKey[string]("account")
	reqctx.Provide(srv.Registry(), account, reqctx.Prop[string]{
		Resolve: func(ctx context.Context) (string, error) {
			return "the account", nil // from a database
		},
	})
	srv.HandleFunc("GET /account", func(w http.ResponseWriter, req *server.Request) error {
		user, err := req.Session().User()
		if err != nil {
			return err
		}
		a, err := account.Get(req)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s of %q\n", a, user)
		return nil
	}, server.Prefetch(session.Loaded, account))
	show(srv, httptest.NewRequest("GET", "/account", nil))
	// Output: 200 the account of ""
}

// A route of an account requires its user: the handler runs only for requests that have one.
func ExampleRequire() {
	srv, err := server.New(server.Options{})
	if err != nil {
		log.Fatal(err)
	}
	user := reqctx.NewKey[string]("user")
	reqctx.Provide(srv.Registry(), user, reqctx.Prop[string]{
		Resolve: func(ctx context.Context) (string, error) {
			if reqctx.From(ctx).Request().Header.Get("Authorization") != "Bearer ada's" {
				return "", server.Errorf(http.StatusUnauthorized, "Unknown token.")
			}
			return "ada", nil
		},
		Vary: []string{"Authorization"},
	})
	srv.HandleFunc("GET /account", func(w http.ResponseWriter, req *server.Request) error {
		u, err := user.Get(req) // costs nothing
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "the account of %s\n", u)
		return nil
	}, server.Require(user))

	r := httptest.NewRequest("GET", "/account", nil)
	show(srv, r)
	r.Header.Set("Authorization", "Bearer ada's")
	show(srv, r)
	// Output:
	// 401 {"detail":"Unknown token.","status":401,"title":"Unauthorized"}
	// 200 the account of ada
}

// All routes of the API need a login. The list of routes shows that one of another file does not.
func ExampleServer_Group() {
	srv, err := server.New(server.Options{})
	if err != nil {
		log.Fatal(err)
	}
	hello := func(w http.ResponseWriter, req *server.Request) error {
		return server.WriteJSON(w, http.StatusOK, "hello")
	}
	api := srv.Group("/api/", server.Require(session.LoggedIn))
	api.HandleFunc("GET /notes", hello)
	srv.HandleFunc("GET /api/debug", hello)

	for r := range srv.Routes() {
		fmt.Println(r.Pattern, "requires", r.Requires, "and lacks", r.Lacks)
	}
	show(srv, httptest.NewRequest("GET", "/api/notes", nil))
	show(srv, httptest.NewRequest("GET", "/api/debug", nil))
	// Output:
	// GET /api/notes requires [session.LoggedIn] and lacks []
	// GET /api/debug requires [] and lacks [session.LoggedIn]
	// 401 {"detail":"Log in and try again.","status":401,"title":"Login required"}
	// 200 "hello"
}
