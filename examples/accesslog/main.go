// Accesslog is a server that logs one line for each request. The line shows the status, the resolved
// properties with their durations, and the decisions of the rate limit. If method, route, status, bytes and
// duration are enough, use server.AccessLog.
//
//	go run ./examples/accesslog
//
//	curl http://127.0.0.1:8080/profile
//	curl http://127.0.0.1:8080/fast
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"os/signal"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/session"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "`host:port` to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	srv, err := newServer(slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "Listening on http://%s\n", *addr) // standard output is for the log
	if err := srv.RunUntil(ctx, func() error { return srv.ListenAndServe(*addr) }); err != nil {
		log.Print(err)
	}
}

var (
	visits  = session.NewCounter("visits")
	account = reqctx.NewKey[string]("account")
	profile = ratelimit.NewPolicy("profile", ratelimit.ByIP(), ratelimit.PerMinute(5))
)

// newServer returns a server whose requests are logged by log.
func newServer(log *slog.Logger) (*server.Server, error) {
	srv, err := server.New(server.Options{
		Logger:     log,
		Observers:  []server.Observer{newAccessLog(log)},
		Session:    session.Options{Cookie: session.Cookie{Insecure: true}}, // this example uses plain HTTP
		RateLimits: []*ratelimit.Policy{profile},
	})
	if err != nil {
		return nil, err
	}
	reqctx.Provide(srv.Registry(), account, reqctx.Prop[string]{Resolve: func(ctx context.Context) (string, error) {
		n, err := visits.Get(ctx) // this loads the session
		return fmt.Sprintf("visitor, seen %d times", n), err
	}})
	srv.HandleFunc("GET /profile", func(w http.ResponseWriter, req *server.Request) error {
		text, err := account.Get(req)
		if err != nil {
			return err
		}
		if err := visits.Add(req, 1); err != nil {
			return err
		}
		_, err = fmt.Fprintln(w, text)
		return err
	}, server.Require(profile))
	srv.HandleFunc("GET /fast", func(w http.ResponseWriter, _ *server.Request) error {
		_, err := fmt.Fprintln(w, "nothing was resolved")
		return err
	})
	return srv, nil
}
