package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/proxy"
)

// runCommand is the flags of the command that runs the proxy.
type runCommand struct {
	Config   string        `help:"Configuration file (YAML), or - for standard input. Other flags override it." placeholder:"FILE"`
	Listen   []string      `help:"Address to listen on (default: 127.0.0.1:8080). Can be repeated." placeholder:"ADDRESS"`
	Upstream string        `help:"Server to forward requests to, such as http://127.0.0.1:9000." placeholder:"URL"`
	Limit    string        `help:"Limit of requests for each client, such as 10/60s." placeholder:"N/TIME"`
	Redis    string        `help:"Redis that stores the counters, to share limits between proxies. Without it, counters are in memory." env:"REDIS_URL" placeholder:"URL"`
	Admin    string        `help:"Address to serve /healthz and /metrics on." placeholder:"ADDRESS"`
	Grace    time.Duration `help:"How long to wait for requests in flight when stopping." default:"30s"`
	Debug    bool          `help:"Also log errors of clients and of single calls to Redis."`

	stdin io.Reader
	read  *config.Config // from standard input, which can be read once
}

// file returns the configuration from the file.
func (r *runCommand) file() (config.Config, error) {
	if r.read != nil {
		return *r.read, nil
	}
	c, err := loadConfig(r.Config, r.stdin)
	if err == nil && r.Config == fromStdin {
		r.read = &c
	}
	return c, err
}

// config returns the configuration from the file and the flags, which override it.
func (r *runCommand) config() (c config.Config, err error) {
	if r.Config != "" {
		if c, err = r.file(); err != nil {
			return c, err
		}
	}
	if len(r.Listen) > 0 {
		c.Listen = nil
		for _, address := range r.Listen {
			c.Listen = append(c.Listen, config.Listener{Address: address})
		}
	}
	if r.Upstream != "" {
		c.Upstreams, c.Routes = map[string]config.Upstream{"upstream": {URL: r.Upstream}}, nil
	}
	if r.Limit != "" {
		rate, err := config.ParseRate(r.Limit)
		if err != nil {
			return c, fmt.Errorf("--limit: %w", err)
		}
		c.Rules = []config.Rule{{Name: "limit", Limit: rate}}
	}
	if r.Redis != "" {
		c.Redis = r.Redis
	}
	if r.Admin != "" {
		c.Admin = r.Admin
	}
	if len(c.Upstreams) == 0 && r.Config == "" {
		return c, errors.New("--upstream or --config is required, to know where requests go")
	}
	if r.Grace < 0 {
		return c, fmt.Errorf("--grace: is %v, want a time such as 30s", r.Grace)
	}
	c, err = c.Resolve()
	return c, r.nameFlags(err)
}

// nameFlags has the errors of fields that come from flags name the flags.
func (r *runCommand) nameFlags(err error) error {
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	for _, err := range all.Unwrap() {
		wrong, ok := errors.AsType[*config.FieldError](err)
		if !ok {
			continue
		}
		field := wrong.Field
		for _, f := range []struct {
			name  string
			given bool
		}{
			{"--upstream", r.Upstream != "" && strings.HasPrefix(field, "upstreams.upstream")},
			{"--listen", len(r.Listen) > 0 && strings.HasPrefix(field, "listen[")},
			{"--limit", r.Limit != "" && strings.HasPrefix(field, "rules[")},
			{"--redis", r.Redis != "" && field == "redis"},
			{"--admin", r.Admin != "" && field == "admin"},
		} {
			if f.given {
				wrong.At, wrong.Field = "", f.name
			}
		}
	}
	return err
}

// run serves until ctx ends.
func (r *runCommand) run(ctx context.Context, stdout io.Writer, log *slog.Logger) error {
	c, err := r.config()
	if err != nil {
		return &usageError{err}
	}
	p, err := proxy.New(c, proxy.Options{Logger: log})
	if err != nil {
		return &usageError{err}
	}
	defer func() { _ = p.Close() }()
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
	(&reloader{command: r, p: p, started: c, log: log}).watch(ctx, work)
	work.Go(func() error {
		<-ctx.Done()
		log.Info("stopping", slog.Duration("grace", r.Grace))
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Grace)
		defer cancel()
		if err := s.Shutdown(grace); err != nil {
			log.Warn("grace period over: requests and websockets were cut off", slog.Any("error", err))
		}
		return admin.Close() // until now, /healthz has reported the stop
	})
	return work.Wait()
}

// ignoreClosed returns nil for the error of a server that was stopped.
func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// listen opens all addresses or none, the one of /healthz and /metrics last.
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
