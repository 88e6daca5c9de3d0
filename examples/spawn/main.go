// Spawn is a server with a call that must not be made twice: it starts a machine. A client first requests a
// token, at most one per second, and can then use the token once.
//
//	go run ./examples/spawn
//	go run ./examples/spawn -addr 127.0.0.1:9090
//	REDIS_URL=redis://127.0.0.1:6379 go run ./examples/spawn
//
// With REDIS_URL, several servers accept one another's tokens.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/coord"
	"github.com/lazyreq/lazyreq/coord/memstore"
	coordstore "github.com/lazyreq/lazyreq/coord/redisstore"
	"github.com/lazyreq/lazyreq/ratelimit"
	ratestore "github.com/lazyreq/lazyreq/ratelimit/redisstore"
	"github.com/lazyreq/lazyreq/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "spawn:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and then waits for the requests in progress.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("spawn", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:8080", "`host:port` to listen on; port 0 picks a free one")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	st, err := openStores(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer func() { _ = st.close() }()
	srv, err := newServer(st)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Listening on http://%[1]s\n\n  curl -d size=small http://%[1]s/tokens\n  curl 'http://%[1]s/spawn_vm?token=…'\n", l.Addr())
	return srv.RunUntil(ctx, func() error { return srv.Serve(l) })
}

// stores holds the stores of tokens and counters. If counters is nil, they are in memory.
type stores struct {
	tokens   coord.TokenStore
	counters ratelimit.Store
	close    func() error
}

func openStores(url string) (s stores, err error) {
	if url == "" {
		s.close = func() error { return nil }
		s.tokens, err = memstore.New(memstore.Options{})
		return s, err
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		return s, fmt.Errorf("REDIS_URL: %w", err)
	}
	client := redis.NewClient(o)
	s.close = client.Close
	if s.tokens, err = coordstore.New(client, coordstore.Options{}); err != nil {
		return s, err
	}
	s.counters, err = ratestore.New(client, ratestore.Options{})
	return s, err
}

func newServer(st stores) (*server.Server, error) {
	tokens, err := coord.NewTokens(st.tokens)
	if err != nil {
		return nil, err
	}
	perSecond := ratelimit.NewPolicy("tokens", ratelimit.ByIP(), ratelimit.Throttle(time.Second))
	srv, err := server.New(server.Options{
		RateLimitStore: st.counters,
		RateLimits:     []*ratelimit.Policy{perSecond},
	})
	if err != nil {
		return nil, err
	}
	srv.HandleFunc("POST /tokens", func(w http.ResponseWriter, req *server.Request) error { return issueToken(w, req, tokens) },
		server.Require(perSecond))
	srv.HandleFunc("GET /spawn_vm", func(w http.ResponseWriter, req *server.Request) error { return spawnMachine(w, req, tokens) })
	return srv, nil
}

// issueToken issues a token for a machine of a size. The token lasts for half a minute.
func issueToken(w http.ResponseWriter, req *server.Request, tokens *coord.Tokens) error {
	size, err := req.Params().Form().String("size")
	if err != nil {
		return err
	}
	id := coord.NewID()
	if err := tokens.Issue(req, id, []byte(size), 30*time.Second); err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, id)
	return err
}

// spawnMachine starts a machine if the request is the first to use the token. Other requests with the token get a
// 409. An unknown token gets a 404, and an expired token a 410.
func spawnMachine(w http.ResponseWriter, req *server.Request, tokens *coord.Tokens) error {
	id, err := req.Params().Query().String("token")
	if err != nil {
		return err
	}
	token, err := tokens.Use(req, id, req.RemoteAddr)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "a %s machine is starting\n", token.Metadata)
	return err
}
