// Command ratelimit-proxy is a reverse proxy that limits how much its clients may ask for:
//
//	ratelimit-proxy --listen 127.0.0.1:8080 --upstream http://127.0.0.1:9000 --limit 10/60s
//	ratelimit-proxy --config proxy.yaml
//	ratelimit-proxy check proxy.yaml
//
// docs/proxy.md describes the configuration.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/server/proxy"
)

// commands are the program's command line.
type commands struct {
	Run   runCommand   `cmd:"" default:"withargs" help:"Run the proxy."`
	Check checkCommand `cmd:"" help:"Check a configuration and run nothing."`
}

type checkCommand struct {
	Config string `arg:"" help:"The configuration's file."`
}

// ballast has the garbage collector wait for as much garbage as this and not for 4 MB, which
// are a few hundred requests: half of what it would do otherwise is to begin and to end. Its
// pages are never touched, so it takes no memory itself.
var ballast = make([]byte, 32<<20)

func main() {
	defer runtime.KeepAlive(ballast)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := program(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// program runs a command line and returns the exit status: 2 if the command line or the
// configuration is wrong, 1 if something else went wrong.
func program(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c commands
	exit := -1
	parser, err := kong.New(&c,
		kong.Name("ratelimit-proxy"),
		kong.Description("A reverse proxy that limits how much its clients may ask for."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }),
	)
	if err != nil {
		fmt.Fprintln(stderr, "ratelimit-proxy:", err)
		return 1
	}
	parsed, err := parser.Parse(args)
	switch {
	case exit >= 0: // help was asked for
		return exit
	case err != nil:
		fmt.Fprintf(stderr, "ratelimit-proxy: %v\n", err)
		return 2
	}
	if parsed.Command() == "check <config>" {
		return check(c.Check.Config, stdout, stderr)
	}
	log := newLogger(stderr)
	redis.SetLogger(redisLog{log})
	err = c.Run.run(ctx, stdout, log)
	var wrong *usageError
	switch {
	case errors.As(err, &wrong):
		fmt.Fprintf(stderr, "ratelimit-proxy: %v\n", err)
		return 2
	case err != nil:
		log.Error("stopped", slog.Any("error", err))
		return 1
	}
	return 0
}

// usageError is a mistake of whoever has started the program.
type usageError struct{ error }

func check(file string, stdout, stderr io.Writer) int {
	c, err := load(file)
	if err == nil {
		err = proxy.Check(c)
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	fmt.Fprintf(stdout, "%s is valid\n", file)
	return 0
}

func load(file string) (proxy.Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return proxy.Config{}, err
	}
	return proxy.Parse(file, data)
}

// redisLog is where the client of Redis complains. What comes of it is logged elsewhere.
type redisLog struct{ log *slog.Logger }

// Printf is for the client of Redis.
func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, fmt.Sprintf(format, args...))
}

// newLogger logs readably on a terminal and as JSON elsewhere.
func newLogger(w io.Writer) *slog.Logger {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return slog.New(slog.NewTextHandler(w, nil))
		}
	}
	return slog.New(slog.NewJSONHandler(w, nil))
}
