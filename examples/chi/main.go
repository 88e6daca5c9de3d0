// Chi is an application on the chi router, with chi's own middleware, whose
// handlers are standard ones and read lazy properties from the request's context.
//
//	cd examples/chi && go run .
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/lazyreq/lazyreq/params"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`host:port` to listen on")
	flag.Parse()
	h, srv, err := newHandler()
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	hs := &http.Server{Addr: *addr, Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = hs.Shutdown(ctx)
	}()
	fmt.Printf("Listening on http://%s\n\n  curl -c jar -b jar http://%[1]s/notes/first -d text=hello\n  curl -c jar -b jar http://%[1]s/notes\n", *addr)
	if err := hs.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	// The server's own part: the ends of requests.
	if err := srv.Shutdown(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// notes is a field of the session.
var notes = session.NewField[map[string]string]("notes")

func newHandler() (http.Handler, *server.Server, error) {
	srv, err := server.New(server.Options{
		Session: session.Options{Cookie: session.Cookie{Insecure: true}}, // plain HTTP, for trying it out
	})
	if err != nil {
		return nil, nil, err
	}
	r := chi.NewRouter()
	r.Use(middleware.RequestID, middleware.Compress(5))
	r.Use(middleware.Timeout(10 * time.Second))
	r.Get("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "GET /notes, POST /notes/{name}") })
	r.Get("/notes", list)
	r.Post("/notes/{name}", add)
	r.Get("/stream", stream)
	r.Get("/early", early)
	return srv.Wrap(r), srv, nil
}

func list(w http.ResponseWriter, r *http.Request) {
	all, err := notes.Get(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(all)
}

func add(w http.ResponseWriter, r *http.Request) {
	p, err := params.Of(r) // chi works on a copy of the request, which has the path values
	if err != nil {
		fail(w, err)
		return
	}
	name, err := p.Path().String("name")
	if err != nil {
		fail(w, err)
		return
	}
	text, err := p.Form().String("text")
	if err != nil {
		fail(w, err)
		return
	}
	all, err := notes.Get(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	if all == nil {
		all = map[string]string{}
	}
	all[name] = text
	if err := notes.Set(r.Context(), all); err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// stream writes into the session and then flushes before it has written a byte: the
// cookie is in the header all the same.
func stream(w http.ResponseWriter, r *http.Request) {
	if err := notes.Set(r.Context(), map[string]string{"stream": "begun"}); err != nil {
		fail(w, err)
		return
	}
	_ = http.NewResponseController(w).Flush()
	fmt.Fprintln(w, "streamed")
}

// early sends hints before the session is written: they commit nothing.
func early(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Link", "</style.css>; rel=preload")
	w.WriteHeader(http.StatusEarlyHints)
	if err := notes.Set(r.Context(), map[string]string{"early": "hints"}); err != nil {
		fail(w, err)
		return
	}
	fmt.Fprintln(w, "after the hints")
}

// fail answers with what the error says of itself.
func fail(w http.ResponseWriter, err error) {
	var told interface {
		Problem() (int, map[string]any)
	}
	status := http.StatusInternalServerError
	if errors.As(err, &told) {
		status, _ = told.Problem()
	}
	http.Error(w, http.StatusText(status), status)
}
