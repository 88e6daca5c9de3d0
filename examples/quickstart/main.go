// Quickstart is a server without middleware. Its handlers read a session, a user, parameters and a rate limit
// as properties of the request. A property is resolved when a request first reads it. If a request does not
// read it, it costs nothing.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -addr 127.0.0.1:9090
//	go run ./examples/quickstart -inspect 127.0.0.1:6060
//	REDIS_URL=redis://127.0.0.1:6379 go run ./examples/quickstart
//
// With -inspect, a page of its own shows what the requests did.
// With REDIS_URL, several of them share their sessions and limits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/lazyreq/lazyreq/server"
	"github.com/lazyreq/lazyreq/server/inspect"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and then waits for the requests in progress.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:8080", "`host:port` to listen on; port 0 picks a free one")
	inspectAddr := flags.String("inspect", "", "`host:port` of a page that shows what requests do, such as 127.0.0.1:6060; empty means none")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	st, err := openStores(ctx, os.Getenv("REDIS_URL"), out)
	if err != nil {
		return err
	}
	defer func() { _ = st.close() }()
	observers, closePage, err := openPage(ctx, *inspectAddr, out)
	if err != nil {
		return err
	}
	defer closePage()
	srv, err := newServer(st, observers...)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", *addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w (is another one running? -addr picks another address)", err)
	} else if err != nil {
		return err
	}
	printHelp(out, "http://"+l.Addr().String())
	return srv.RunUntil(ctx, func() error { return srv.Serve(l) })
}

// openPage serves the inspector's page at addr. It returns the observers that the server needs for this. If addr is
// empty, it does nothing.
func openPage(ctx context.Context, addr string, out io.Writer) (observers []server.Observer, closePage func(), err error) {
	if addr == "" {
		return nil, func() {}, nil
	}
	inspector, err := inspect.New(inspect.Options{})
	if err != nil {
		return nil, nil, err
	}
	page, err := inspect.Listen(ctx, addr, inspector)
	if err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(out, "What requests do: %s\n", page.URL)
	return []server.Observer{inspector}, func() { _ = page.Close() }, nil
}

func printHelp(out io.Writer, url string) {
	fmt.Fprintf(out, `Listening on %[1]s

  curl -i '%[1]s/search?q=go'
  curl -i -c jar -b jar -L -d user=ada %[1]s/login
  curl -i %[1]s/fast

`, url)
}
