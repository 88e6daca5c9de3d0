// Tcp is a server for raw connections without HTTP, with lazy properties and a rate limit. Clients send
// commands in lines. The command WHO looks up the client's name, which is slow and happens once. Clients that
// never send WHO don't wait for it.
//
//	go run ./examples/tcp
//	nc 127.0.0.1 7000
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/reqctx"
	"github.com/lazyreq/lazyreq/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tcp:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("tcp", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:7000", "`host:port` to listen on; port 0 picks a free one")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	srv, err := newServer()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Listening on %s\n\n  commands: TIME, WHO, QUIT\n", l.Addr())
	return srv.RunUntil(ctx, func() error { return srv.ServeConns(l, serveConn) })
}

// peerName is a property of a connection: the host name of the client's address.
var peerName = reqctx.NewKey[string]("peer-name")

func newServer() (*server.Server, error) {
	srv, err := server.New(server.Options{
		IdleTimeout: time.Minute,
		RateLimits:  []*ratelimit.Policy{ratelimit.NewPolicy("connect", ratelimit.ByIP(), ratelimit.PerMinute(10))},
	})
	if err != nil {
		return nil, err
	}
	reqctx.Provide(srv.Registry(), peerName, reqctx.Prop[string]{
		Timeout: 2 * time.Second,
		Resolve: func(ctx context.Context) (string, error) {
			host, _, err := net.SplitHostPort(reqctx.From(ctx).RemoteAddr())
			if err != nil {
				return "", err
			}
			names, err := net.DefaultResolver.LookupAddr(ctx, host)
			if err != nil || len(names) == 0 {
				return host, nil // the address has no name
			}
			return strings.TrimSuffix(names[0], "."), nil
		},
	})
	return srv, nil
}

// serveConn answers the commands of one connection, one in each line.
func serveConn(c *server.Conn) error {
	limit, err := c.RateLimit().Take() // charges once for each connection
	if err != nil {
		return err
	}
	if !limit.Allowed {
		_, err := fmt.Fprintf(c, "too many connections; try again in %v\n", limit.RetryAfter.Round(time.Second))
		return err
	}
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		answer, err := runCommand(c, strings.TrimSpace(lines.Text()))
		if err != nil {
			return err
		}
		if answer == "" {
			return nil
		}
		if _, err := fmt.Fprintln(c, answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

// runCommand returns the answer to a command, or "" to end the connection.
func runCommand(c *server.Conn, line string) (string, error) {
	switch strings.ToUpper(line) {
	case "TIME":
		return time.Now().Format(time.RFC3339), nil
	case "WHO":
		return peerName.Get(c.Context())
	case "QUIT":
		return "", nil
	default:
		return "unknown command; there are TIME, WHO, QUIT", nil
	}
}
