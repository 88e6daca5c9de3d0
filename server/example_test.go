package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

// show prints the response of a server.
func show(h http.Handler, r *http.Request) {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	fmt.Println(rec.Code, strings.TrimSpace(rec.Body.String()))
}

// A server with a limit.
func ExampleServer() {
	srv, err := server.New(server.Options{RateLimits: []*ratelimit.Policy{
		ratelimit.NewPolicy("hello", ratelimit.ByIP(), ratelimit.PerMinute(1)),
	}})
	if err != nil {
		log.Fatal(err)
	}
	srv.HandleFunc("GET /hello/{name}", func(w http.ResponseWriter, req *server.Request) error {
		if err := req.RateLimit().Require(); err != nil {
			return err
		}
		return server.WriteJSON(w, http.StatusOK, "Hello, "+req.PathValue("name")+"!")
	})
	// log.Fatal(srv.ListenAndServe("127.0.0.1:8080"))
	for range 2 {
		rec := httptest.NewRecorder()
		srv.ServeHTTP(rec, httptest.NewRequest("GET", "/hello/Ada", nil))
		fmt.Println(rec.Code, rec.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// 200 "hello";q=1;w=60
	// 429 "hello";q=1;w=60
}

// A property is resolved when a handler first reads it.
func Example() {
	greeting := reqctx.NewKey[string]("greeting")
	srv, err := server.New(server.Options{})
	if err != nil {
		log.Fatal(err)
	}
	reqctx.Provide(srv.Registry(), greeting, reqctx.Prop[string]{
		Resolve: func(ctx context.Context) (string, error) {
			fmt.Println("resolving")
			return "Hello", nil
		},
	})
	srv.HandleFunc("GET /hello/{name}", func(w http.ResponseWriter, req *server.Request) error {
		hello, err := greeting.Get(req)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s, %s!", hello, req.PathValue("name"))
		return err
	})
	srv.HandleFunc("GET /fast", func(w http.ResponseWriter, _ *server.Request) error {
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	show(srv, httptest.NewRequest("GET", "/hello/Ada", nil))
	show(srv, httptest.NewRequest("GET", "/fast", nil))
	// Output:
	// resolving
	// 200 Hello, Ada!
	// 204
}

// The error that a handler returns is the response: here the mistakes of clients.
func ExampleServer_HandleFunc() {
	srv, err := server.New(server.Options{})
	if err != nil {
		log.Fatal(err)
	}
	srv.HandleFunc("GET /double", func(w http.ResponseWriter, req *server.Request) error {
		n, err := req.Params().Query().Int("n")
		if err != nil {
			return err
		}
		if n > 1000 {
			return server.Errorf(http.StatusUnprocessableEntity, "%d is too much.", n)
		}
		return json.NewEncoder(w).Encode(2 * n)
	})
	show(srv, httptest.NewRequest("GET", "/double?n=21", nil))
	show(srv, httptest.NewRequest("GET", "/double?n=5000", nil))
	// Output:
	// 200 42
	// 422 {"detail":"5000 is too much.","status":422,"title":"Unprocessable Entity"}
}

// The handlers of another package's router can use the properties, and answer errors like the server's own handlers.
func ExampleServer_Wrap() {
	srv, err := server.New(server.Options{})
	if err != nil {
		log.Fatal(err)
	}
	router := http.NewServeMux()
	router.HandleFunc("GET /cart", func(w http.ResponseWriter, r *http.Request) {
		s, err := session.From(r.Context())
		if err == nil {
			err = s.Set("seen", true)
		}
		if err != nil {
			server.WriteError(w, r, err)
			return
		}
		fmt.Fprintln(w, "saved")
	})
	show(srv.Wrap(router), httptest.NewRequest("GET", "/cart", nil))
	// Output: 200 saved
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

// All routes of the API need a login. The list of routes shows that a route in another file does not require it.
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
