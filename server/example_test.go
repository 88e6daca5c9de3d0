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

// show prints what a server answers.
func show(srv *server.Server, r *http.Request) {
	rec := httptest.NewRecorder()
	srv.ServeHTTP(rec, r)
	fmt.Println(rec.Code, strings.TrimSpace(rec.Body.String()))
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
		hello, err := greeting.Get(req.Context())
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

// What a handler returns is the response: here the mistakes of clients.
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

// However many helpers ask, a request is charged once.
func ExampleRequest_RateLimit() {
	twice := ratelimit.PerMinute(2)
	srv, err := server.New(server.Options{
		RateLimits: []ratelimit.Policy{{Name: "search", Rules: []ratelimit.Rule{twice}, Key: ratelimit.ByIP()}},
	})
	if err != nil {
		log.Fatal(err)
	}
	srv.HandleFunc("GET /search", func(w http.ResponseWriter, req *server.Request) error {
		for range 3 {
			res, err := req.RateLimit().Take()
			if err != nil {
				return err
			}
			if err := res.Err(); err != nil {
				return err
			}
		}
		return nil
	})
	for range 3 {
		rec := httptest.NewRecorder()
		srv.ServeHTTP(rec, httptest.NewRequest("GET", "/search", nil))
		fmt.Println(rec.Code, rec.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// 200 "search";q=2;w=60
	// 200 "search";q=2;w=60
	// 429 "search";q=2;w=60
}

// A standard handler finds the properties in its request's context.
func ExampleServer_Handle() {
	srv, err := server.New(server.Options{})
	if err != nil {
		log.Fatal(err)
	}
	srv.Handle("GET /", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := session.From(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		known, err := s.Exists()
		fmt.Fprint(w, "known: ", known, " ", err)
	}))
	show(srv, httptest.NewRequest("GET", "/", nil))
	// Output: 200 known: false <nil>
}

// A visitor's session has a quota of its own, and who has none the address's.
func ExampleBySession() {
	rule := ratelimit.PerMinute(1)
	srv, err := server.New(server.Options{RateLimits: []ratelimit.Policy{{
		Name:  "page",
		Rules: []ratelimit.Rule{rule},
		Key:   ratelimit.FirstOf(server.BySession(), ratelimit.ByIP()),
	}}})
	if err != nil {
		log.Fatal(err)
	}
	srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
		res, err := req.RateLimit().Take()
		if err == nil {
			err = res.Err()
		}
		if err != nil {
			return err
		}
		return req.Session().Set("seen", true)
	})
	first := httptest.NewRecorder()
	srv.ServeHTTP(first, httptest.NewRequest("GET", "/", nil)) // counts for the address
	again := httptest.NewRequest("GET", "/", nil)
	again.AddCookie(first.Result().Cookies()[0]) // counts for the session
	for _, r := range []*http.Request{again, again.Clone(again.Context()), httptest.NewRequest("GET", "/", nil)} {
		rec := httptest.NewRecorder()
		srv.ServeHTTP(rec, r)
		fmt.Println(rec.Code)
	}
	// Output:
	// 200
	// 429
	// 429
}
