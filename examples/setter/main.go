// Setter is a property that can be set: a user's theme. Set stores the new value and returns when it is
// stored. Later reads in the same request return the new value.
//
//	go run ./examples/setter
//
//	curl -X PUT -d theme=dark http://127.0.0.1:8080/users/ada/theme
//	curl http://127.0.0.1:8080/users/ada/theme
//	curl -X PUT -d theme=pink http://127.0.0.1:8080/users/ada/theme
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`host:port` to listen on")
	flag.Parse()
	srv, err := newServer(&settings{themes: map[string]string{}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("Listening on http://%s\n", *addr)
	log.Fatal(srv.ListenAndServe(*addr))
}

// theme is the theme of the user in the request's path.
var theme = reqctx.NewKey[string]("theme")

func newServer(db *settings) (*server.Server, error) {
	srv, err := server.New(server.Options{})
	if err != nil {
		return nil, err
	}
	reqctx.Provide(srv.Registry(), theme, reqctx.Prop[string]{
		Resolve: func(ctx context.Context) (string, error) { return db.load(ctx, userOf(ctx)) },
		// Store decides whether the value may change. If Store returns an error, Set returns this error, and the
		// property keeps its old value.
		Store: func(ctx context.Context, v string) error {
			if !slices.Contains([]string{"light", "dark"}, v) {
				return server.Errorf(http.StatusUnprocessableEntity, "The theme must be light or dark.")
			}
			return db.save(ctx, userOf(ctx), v)
		},
	})
	srv.HandleFunc("GET /users/{user}/theme", showTheme)
	srv.HandleFunc("PUT /users/{user}/theme", setTheme)
	return srv, nil
}

func userOf(ctx context.Context) string { return reqctx.From(ctx).Request().PathValue("user") }

func setTheme(w http.ResponseWriter, req *server.Request) error {
	v, err := req.Params().Form().String("theme")
	if err != nil {
		return err
	}
	if err := theme.Set(req, v); err != nil { // the same as req.Set("theme", v)
		return err
	}
	return showTheme(w, req) // this loads nothing, because the property has the new value
}

func showTheme(w http.ResponseWriter, req *server.Request) error {
	v, err := theme.Get(req)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "theme of %s: %s\n", req.PathValue("user"), v)
	return err
}

// settings is a stand-in for a database. Each call takes 50 ms.
type settings struct {
	mu     sync.Mutex
	themes map[string]string
}

func (s *settings) load(ctx context.Context, user string) (string, error) {
	if err := wait(ctx, 50*time.Millisecond); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.themes[user]; ok {
		return v, nil
	}
	return "light", nil
}

func (s *settings) save(ctx context.Context, user, theme string) error {
	if err := wait(ctx, 50*time.Millisecond); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.themes[user] = theme
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
