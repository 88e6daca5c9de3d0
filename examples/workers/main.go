// Workers runs several processes that share one Redis and some users. One process at a time works for
// each user. Every two seconds one process is killed and a new one is started, and other processes
// continue with its users.
//
//	go run ./examples/workers
//	go run ./examples/workers -processes 6 -users 10 -for 1m
//	REDIS_URL=redis://127.0.0.1:6379 go run ./examples/workers
//
// Without REDIS_URL it starts a redis-server, which must be installed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/lazyreq/lazyreq/internal/redisproc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if o, child := childOptions(); child {
		err = o.work(ctx, os.Stdin, os.Stdout)
	} else {
		err = run(ctx, os.Args[1:], os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "workers:", err)
		os.Exit(1)
	}
}

// run is the process that starts the others and kills them.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("workers", flag.ContinueOnError)
	processes := flags.Int("processes", 4, "number of processes")
	users := flags.Int("users", 5, "number of users")
	length := flags.Duration("for", 20*time.Second, "how long the program runs")
	every := flags.Duration("kill", 2*time.Second, "how often a process is killed")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case *processes < 1 || *users < 1 || *every <= 0:
		return errors.New("-processes, -users and -kill must be positive")
	}
	url, stop, err := findRedis()
	if err != nil {
		return err
	}
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *length)
	defer cancel()
	c := &crew{options: options{URL: url, Users: *users}, out: out}
	return c.run(ctx, *processes, *every)
}

// findRedis returns the URL of a Redis, and a function that stops it if it was started here.
func findRedis() (url string, stop func(), err error) {
	if url := os.Getenv("REDIS_URL"); url != "" {
		return url, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "workers")
	if err != nil {
		return "", nil, err
	}
	p, err := redisproc.Start(dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return "", nil, fmt.Errorf("no REDIS_URL, and no redis-server to start: %w", err)
	}
	return "redis://" + p.Addr, func() { p.Close(); _ = os.RemoveAll(dir) }, nil
}
