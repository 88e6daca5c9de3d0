// Workers runs several processes that share one Redis and some users. At any time, one process works for each
// user. Every two seconds, the program kills one process and starts a new one. Other processes then continue
// with the killed process's users.
//
//	go run ./examples/workers
//	go run ./examples/workers -processes 6 -users 10 -for 1m
//	REDIS_URL=redis://10.0.0.2:6379 go run ./examples/workers
//
// Without REDIS_URL it uses the Redis at 127.0.0.1:6379.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
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

// run starts the worker processes and kills one of them from time to time.
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
	ctx, cancel := context.WithTimeout(ctx, *length)
	defer cancel()
	c := &crew{options: options{URL: cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379"), Users: *users}, out: out}
	return c.run(ctx, *processes, *every)
}
