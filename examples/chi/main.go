// Chi is an application on the chi router, with chi's own middleware. Some of its handlers return errors, and
// others are standard handlers. All read lazy properties from the request. One route requires a rate limit.
//
//	cd examples/chi && go run .
//
//	curl -c jar -b jar http://127.0.0.1:8080/notes/first -d text=hello
//	curl -c jar -b jar http://127.0.0.1:8080/notes
package main

import (
	"context"
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

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`host:port` to listen on")
	flag.Parse()
	h, err := newHandler()
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	hs := &http.Server{Addr: *addr, Handler: h, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		stopped <- hs.Shutdown(ctx)
	}()
	fmt.Printf("Listening on http://%s\n\n  curl -c jar -b jar http://%[1]s/notes/first -d text=hello\n  curl -c jar -b jar http://%[1]s/notes\n", *addr)
	if err := hs.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	if err := <-stopped; err != nil {
		log.Fatal(err)
	}
}

// Writes limits how many notes each client adds.
var Writes = ratelimit.NewPolicy("writes", ratelimit.ByIP(), ratelimit.PerMinute(20))

// notes is a field of the session.
var notes = session.NewField[map[string]string]("notes")

func newHandler() (http.Handler, error) {
	srv, err := server.New(server.Options{
		RateLimits: []*ratelimit.Policy{Writes},
		Session:    session.Options{Cookie: session.Cookie{Insecure: true}}, // this example uses plain HTTP
	})
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	r.Use(middleware.RequestID, middleware.Compress(5))
	r.Use(middleware.Timeout(10 * time.Second))
	r.Get("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "GET /notes, POST /notes/{name}") })
	r.Method("GET", "/notes", srv.WrapFunc(listNotes))
	r.With(server.Requiring(Writes)).Method("POST", "/notes/{name}", srv.WrapFunc(addNote))
	r.Get("/stream", writeAndFlush)
	r.Get("/early", sendEarlyHints)
	return srv.Wrap(r), nil // with Wrap, the middleware and standard handlers have the properties, too
}

func listNotes(w http.ResponseWriter, req *server.Request) error {
	all, err := notes.Get(req)
	if err != nil {
		return err
	}
	return server.WriteJSON(w, http.StatusOK, all)
}

func addNote(w http.ResponseWriter, req *server.Request) error {
	name, err := req.Params().Path().String("name")
	if err != nil {
		return err
	}
	text, err := req.Params().Form().String("text")
	if err != nil {
		return err
	}
	err = notes.Update(req, func(all map[string]string) (map[string]string, error) {
		if all == nil {
			all = map[string]string{}
		}
		all[name] = text
		return all, nil
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// writeAndFlush changes the session and then flushes the response. The response's header still has the session's
// cookie. As a standard handler, writeAndFlush answers errors with WriteError.
func writeAndFlush(w http.ResponseWriter, r *http.Request) {
	if err := notes.Set(r.Context(), map[string]string{"stream": "begun"}); err != nil {
		server.WriteError(w, r, err)
		return
	}
	_ = http.NewResponseController(w).Flush()
	fmt.Fprintln(w, "streamed")
}

// sendEarlyHints sends early hints and then changes the session. The hints don't commit the session.
func sendEarlyHints(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Link", "</style.css>; rel=preload")
	w.WriteHeader(http.StatusEarlyHints)
	if err := notes.Set(r.Context(), map[string]string{"early": "hints"}); err != nil {
		server.WriteError(w, r, err)
		return
	}
	fmt.Fprintln(w, "after the hints")
}
