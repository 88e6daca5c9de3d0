package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/params"
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

// A server ends when it is interrupted, after the requests in progress.
func ExampleServer_Shutdown() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	srv, err := server.New(server.Options{})
	if err != nil {
		log.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.ListenAndServe("127.0.0.1:8080") }()
	select {
	case err = <-served:
	case <-ctx.Done():
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err = srv.Shutdown(ctx)
	}
	if err != nil {
		log.Print(err)
	}
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

// However many functions ask, a request is charged once.
func ExampleRequest_RateLimit() {
	srv, err := server.New(server.Options{
		RateLimits: []*ratelimit.Policy{ratelimit.NewPolicy("search", ratelimit.ByIP(), ratelimit.PerMinute(2))},
	})
	if err != nil {
		log.Fatal(err)
	}
	srv.HandleFunc("GET /search", func(w http.ResponseWriter, req *server.Request) error {
		for range 3 {
			if err := req.RateLimit().Require(); err != nil {
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
			server.WriteError(w, r, err)
			return
		}
		known, err := s.Exists()
		fmt.Fprint(w, "known: ", known, " ", err)
	}))
	show(srv, httptest.NewRequest("GET", "/", nil))
	// Output: 200 known: false <nil>
}

// A visitor's session has a quota of its own; requests without a session share their address's.
func ExampleBySession() {
	key := ratelimit.FirstOf(server.BySession(), ratelimit.ByIP())
	srv, err := server.New(server.Options{
		RateLimits: []*ratelimit.Policy{ratelimit.NewPolicy("page", key, ratelimit.PerMinute(1))},
	})
	if err != nil {
		log.Fatal(err)
	}
	srv.HandleFunc("GET /", func(w http.ResponseWriter, req *server.Request) error {
		if err := req.RateLimit().Require(); err != nil {
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

// Middleware is around all handlers, and around the 404 of unknown routes.
func ExampleServer_Use() {
	srv, err := server.New(server.Options{})
	if err != nil {
		log.Fatal(err)
	}
	srv.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Println(r.Method, r.URL.Path)
			next.ServeHTTP(w, r)
		})
	})
	srv.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *server.Request) error {
		return server.WriteJSON(w, http.StatusOK, "Hello!")
	})
	show(srv, httptest.NewRequest("GET", "/hello", nil))
	show(srv, httptest.NewRequest("GET", "/nowhere", nil))
	// Output:
	// GET /hello
	// 200 "Hello!"
	// GET /nowhere
	// 404 {"status":404,"title":"Not Found"}
}

// A router of another package has the properties, and its handlers answer errors as the
// server's own do.
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

// A standard handler answers with the problem that an error stands for.
func ExampleWriteError() {
	srv, err := server.New(server.Options{})
	if err != nil {
		log.Fatal(err)
	}
	srv.Handle("GET /orders/{id}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := params.Of(r)
		if err == nil {
			_, err = p.Path().Int("id")
		}
		if err != nil {
			server.WriteError(w, r, err)
			return
		}
		fmt.Fprintln(w, "the order")
	}))
	show(srv, httptest.NewRequest("GET", "/orders/7", nil))
	show(srv, httptest.NewRequest("GET", "/orders/1000000000000000000000", nil))
	// Output:
	// 200 the order
	// 400 {"detail":"path parameter \"id\" is out of range","errors":[{"detail":"is out of range","parameter":"id","source":"path"}],"status":400,"title":"Bad Request"}
}
