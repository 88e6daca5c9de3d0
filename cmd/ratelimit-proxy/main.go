// Command ratelimit-proxy is a rate-limiting reverse proxy:
//
//	ratelimit-proxy --listen 127.0.0.1:8080 --upstream http://127.0.0.1:9000 --limit 10/60s
//	ratelimit-proxy --config proxy.yaml
//	ratelimit-proxy check proxy.yaml
//
// docs/proxy.md describes the configuration.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/proxy"
)

// commands describes the command line of the program.
type commands struct {
	Version kong.VersionFlag `help:"Print the version and exit."`

	runCommand
	Run   struct{}     `cmd:"" default:"withargs" help:"Run the proxy. This is the command if none is given."`
	Check checkCommand `cmd:"" help:"Check a configuration file and exit."`
}

// AfterApply is called by kong. It returns an error if the value of a flag is empty, for example of --limit "$LIMIT"
// if the variable is not set. It also returns an error if check has a flag, since all flags here belong to run.
func (c *commands) AfterApply(parsed *kong.Context) error {
	for _, p := range parsed.Path {
		if p.Flag == nil {
			continue
		}
		if parsed.Command() == checkName {
			return fmt.Errorf("--%s: check has no such flag", p.Flag.Name)
		}
		if v := p.Flag.Target; (v.Kind() == reflect.String || v.Kind() == reflect.Slice) && v.Len() == 0 {
			return fmt.Errorf("--%s: is empty: set a value, or omit the flag", p.Flag.Name)
		}
	}
	return nil
}

// checkName is kong's name of the command check.
const checkName = "check <config>"

type checkCommand struct {
	Config string `arg:"" help:"Configuration file (YAML)."`
}

// gcPercent is the program's GOGC, unless the environment sets another. With Go's default of 100, a proxy without
// counters in memory would collect garbage after every 4 MB, which is about 250 requests.
const gcPercent = 200

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the program at once
	code := runProgram(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// runProgram runs a command line and returns the exit status: 2 if the command line or the configuration is not valid,
// 1 after another error.
func runProgram(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c commands
	exit := -1
	parser, err := kong.New(&c,
		kong.Name("ratelimit-proxy"),
		kong.Description("A rate-limiting reverse proxy. docs/proxy.md describes the configuration file."),
		kong.Vars{"version": version()},
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }),
	)
	if err != nil {
		fmt.Fprintln(stderr, "ratelimit-proxy:", err)
		return 1
	}
	parsed, err := parser.Parse(args)
	switch {
	case exit >= 0: // kong has printed the help or the version
		return exit
	case err != nil:
		fmt.Fprintf(stderr, "ratelimit-proxy: %v\n", err)
		return 2
	}
	if parsed.Command() == checkName {
		return checkConfig(c.Check.Config, stdout, stderr)
	}
	log := newLogger(stderr, c.Debug)
	redis.SetLogger(redisLog{log})
	slog.SetLogLoggerLevel(slog.LevelWarn)
	slog.SetDefault(log) // package log then uses the same logger
	conf, p, err := c.newProxy(log)
	if err != nil {
		fmt.Fprintf(stderr, "ratelimit-proxy: %v\n", err)
		return 2
	}
	defer p.Close()
	if err := c.serve(ctx, conf, p, stdout, log); err != nil {
		log.Error("stopped", slog.Any("error", err))
		return 1
	}
	return 0
}

// version returns the versions of the program and of Go.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return fmt.Sprintf("ratelimit-proxy %s %s", info.Main.Version, info.GoVersion)
}

func checkConfig(file string, stdout, stderr io.Writer) int {
	c, err := loadConfig(file)
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

func loadConfig(file string) (config.Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return config.Config{}, err
	}
	return config.Parse(file, data)
}

// redisLog is a logger for the Redis client. It logs at debug level, since an outage is logged elsewhere.
type redisLog struct{ log *slog.Logger }

// Printf is called by the Redis client.
func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, fmt.Sprintf(format, args...))
}

// newLogger returns a logger that writes text to a terminal and JSON to anything else.
func newLogger(w io.Writer, debug bool) *slog.Logger {
	o := &slog.HandlerOptions{}
	if debug {
		o.Level = slog.LevelDebug
	}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return slog.New(slog.NewTextHandler(w, o))
		}
	}
	return slog.New(slog.NewJSONHandler(w, o))
}
