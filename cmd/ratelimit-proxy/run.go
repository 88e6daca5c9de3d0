package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/proxy"
)

// runCommand holds the flags of the command that runs the proxy.
type runCommand struct {
	Config   string        `help:"Configuration file (YAML). Other flags override it." placeholder:"FILE"`
	Listen   []string      `help:"Address to listen on (default: 127.0.0.1:8080). Can be repeated." placeholder:"ADDRESS"`
	Upstream string        `help:"Server to forward requests to, such as http://127.0.0.1:9000." placeholder:"URL"`
	Limit    string        `help:"Limit of requests for each client, such as 10/60s." placeholder:"N/TIME"`
	Redis    string        `help:"Redis that stores the counters, to share limits between proxies. Without it, counters are in memory." env:"REDIS_URL" placeholder:"URL"`
	Admin    string        `help:"Address to serve /healthz and /metrics on." placeholder:"ADDRESS"`
	Grace    time.Duration `help:"How long to wait for requests in flight when stopping." default:"30s"`
	Debug    bool          `help:"Also log errors of clients and of single calls to Redis."`
}

// config returns the configuration from the file, changed by the flags.
func (r *runCommand) config() (c config.Config, err error) {
	if r.Config != "" {
		if c, err = loadConfig(r.Config); err != nil {
			return c, err
		}
	}
	if len(r.Listen) > 0 {
		c.Listen = nil
		for _, address := range r.Listen {
			c.Listen = append(c.Listen, config.Listener{Address: address})
		}
		c.SetOrigin("listen", "--listen")
	}
	if r.Upstream != "" {
		c.Upstreams, c.Routes = map[string]config.Upstream{"upstream": {URL: r.Upstream}}, nil
		c.SetOrigin("upstreams", "--upstream")
	}
	if r.Limit != "" {
		rate, err := config.ParseRate(r.Limit)
		if err != nil {
			return c, fmt.Errorf("--limit: %w", err)
		}
		c.Rules = []config.Rule{{Name: "limit", Limit: rate}}
		c.SetOrigin("rules", "--limit")
	}
	if r.Redis != "" {
		c.Redis = r.Redis
		c.SetOrigin("redis", "--redis")
	}
	if r.Admin != "" {
		c.Admin = r.Admin
		c.SetOrigin("admin", "--admin")
	}
	if len(c.Upstreams) == 0 && r.Config == "" {
		return c, errors.New("--upstream or --config is required, to know where requests go")
	}
	if r.Grace < 0 {
		return c, fmt.Errorf("--grace: is %v, want a time such as 30s", r.Grace)
	}
	return c.Resolve()
}

// newProxy returns a new proxy and its configuration.
func (r *runCommand) newProxy(log *slog.Logger) (config.Config, *proxy.Proxy, error) {
	c, err := r.config()
	if err != nil {
		return c, nil, err
	}
	p, err := proxy.New(c, log)
	return c, p, err
}

// serve serves clients until ctx ends. Then it stops gracefully.
func (r *runCommand) serve(ctx context.Context, c config.Config, p *proxy.Proxy, stdout io.Writer, log *slog.Logger) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	listeners, err := listen(p, c)
	if err != nil {
		return err
	}
	s, admin := p.Server(), p.AdminServer()
	work, ctx := errgroup.WithContext(ctx)
	for i, l := range listeners {
		serve := s.Serve
		switch {
		case i == len(c.Listen):
			serve = admin.Serve
			fmt.Fprintf(stdout, "admin on http://%s\n", l.Addr())
		case c.Listen[i].Cert != "":
			fmt.Fprintf(stdout, "listening on https://%s\n", l.Addr())
		default:
			fmt.Fprintf(stdout, "listening on http://%s\n", l.Addr())
		}
		work.Go(func() error { return ignoreClosed(serve(l)) })
	}
	reloads := &reloader{command: r, p: p, started: c, log: log}
	reloads.warnMistakes(ctx, c)
	go reloads.watch(ctx, hangup)
	work.Go(func() error {
		<-ctx.Done()
		log.Info("stopping", slog.String("grace", r.Grace.String()))
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Grace)
		defer cancel()
		if err := s.Shutdown(grace); err != nil {
			log.Warn("grace period over: requests and websockets were cut off", slog.Any("error", err))
		}
		return admin.Close() // until here, /healthz has answered 503
	})
	return work.Wait()
}

// ignoreClosed returns nil for the error that a server returns after Shutdown or Close.
func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// listen opens all addresses. If one fails, it closes the others. The address of /healthz and /metrics is the last.
func listen(p *proxy.Proxy, c config.Config) (out []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range out {
				_ = l.Close()
			}
		}
	}()
	for _, l := range c.Listen {
		opened, err := p.Listen(l)
		if err != nil {
			return out, err
		}
		out = append(out, opened)
	}
	if c.Admin != "" {
		l, err := net.Listen("tcp", c.Admin)
		if err != nil {
			return out, fmt.Errorf("admin: %w", err)
		}
		out = append(out, l)
	}
	return out, nil
}
