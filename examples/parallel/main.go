// Parallel is a page that needs two slow properties: the weather takes 300 ms, and the news 500 ms. There are
// four routes. The first reads them one after another, the second resolves them in parallel, the third
// prefetches them, and the fourth requires them. The program prints how long each request took.
//
//	go run ./examples/parallel
//
//	curl http://127.0.0.1:8080/sequential
//	curl http://127.0.0.1:8080/parallel
//	curl http://127.0.0.1:8080/prefetched
//	curl http://127.0.0.1:8080/required
//
// It prints:
//
//	/sequential took 800ms
//	/parallel took 500ms
//	/prefetched took 500ms
//	/required took 500ms
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`host:port` to listen on")
	flag.Parse()
	srv, err := newServer(os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Listening on http://%s\n", *addr)
	log.Fatal(srv.ListenAndServe(*addr))
}

var (
	weather = reqctx.NewKey[string]("weather")
	news    = reqctx.NewKey[string]("news")
)

func newServer(out io.Writer) (*server.Server, error) {
	srv, err := server.New(server.Options{})
	if err != nil {
		return nil, err
	}
	srv.Use(measure(out))
	reqctx.Provide(srv.Registry(), weather, reqctx.Prop[string]{
		Resolve: func(ctx context.Context) (string, error) { return fetch(ctx, 300*time.Millisecond, "sunny") },
	})
	reqctx.Provide(srv.Registry(), news, reqctx.Prop[string]{
		Resolve: func(ctx context.Context) (string, error) { return fetch(ctx, 500*time.Millisecond, "none") },
	})
	srv.HandleFunc("GET /sequential", showPage)
	srv.HandleFunc("GET /parallel", func(w http.ResponseWriter, req *server.Request) error {
		// When Resolve has returned, both properties are resolved, and showPage does not wait.
		if err := req.Resolve("weather", "news"); err != nil {
			return err
		}
		return showPage(w, req)
	})
	// This route has the same handler as /sequential. It starts to resolve both properties before it calls the
	// handler.
	srv.HandleFunc("GET /prefetched", showPage, server.Prefetch(weather, news))
	// If a property fails, this route answers the error and does not call the handler.
	srv.HandleFunc("GET /required", showPage, server.Require(weather, news))
	return srv, nil
}

// showPage reads the properties one after another. It waits for a property that is not resolved yet.
func showPage(w http.ResponseWriter, req *server.Request) error {
	sky, err := weather.Get(req)
	if err != nil {
		return err
	}
	headlines, err := news.Get(req)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "weather: %s, news: %s\n", sky, headlines)
	return err
}

// fetch is a stand-in for a call of another service.
func fetch(ctx context.Context, takes time.Duration, answer string) (string, error) {
	select {
	case <-time.After(takes):
		return answer, nil
	case <-ctx.Done(): // the client has left
		return "", context.Cause(ctx)
	}
}

// measure prints how long each request took.
func measure(out io.Writer) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			next.ServeHTTP(w, r)
			fmt.Fprintf(out, "%s took %v\n", r.URL.Path, time.Since(began).Round(10*time.Millisecond))
		})
	}
}
