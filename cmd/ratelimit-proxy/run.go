package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lazyreq/lazyreq/server/proxy"
)

// runCommand is what one can say on the command line.
type runCommand struct {
	Config   string        `help:"YAML file with the whole configuration, - for standard input; the other flags overrule it." placeholder:"FILE"`
	Listen   []string      `help:"Address to listen on. Default: 127.0.0.1:8080." placeholder:"ADDRESS"`
	Upstream string        `help:"Server that requests go to, such as http://127.0.0.1:9000." placeholder:"URL"`
	Limit    string        `help:"Requests in a time, for each client, such as 10/60s." placeholder:"N/TIME"`
	Redis    string        `help:"Redis that all proxies with the same limits share." env:"REDIS_URL" placeholder:"URL"`
	Admin    string        `help:"Address of /healthz and /metrics." placeholder:"ADDRESS"`
	Grace    time.Duration `help:"How long requests under way are waited for at the end." default:"30s"`
	Debug    bool          `help:"Log what clients and Redis do wrong, too."`

	stdin io.Reader
	read  *proxy.Config // of standard input, which can be read once
}

// file returns the configuration of the file.
func (r *runCommand) file() (proxy.Config, error) {
	if r.read != nil {
		return *r.read, nil
	}
	c, err := load(r.Config, r.stdin)
	if err == nil && r.Config == fromStdin {
		r.read = &c
	}
	return c, err
}

// config returns the configuration: the file's, overruled by the flags.
func (r *runCommand) config() (c proxy.Config, err error) {
	if r.Config != "" {
		if c, err = r.file(); err != nil {
			return c, err
		}
	}
	if len(r.Listen) > 0 {
		c.Listen = nil
		for _, address := range r.Listen {
			c.Listen = append(c.Listen, proxy.Listener{Address: address})
		}
	}
	if r.Upstream != "" {
		c.Upstreams, c.Routes = map[string]proxy.Upstream{"upstream": {URL: r.Upstream}}, nil
	}
	if r.Limit != "" {
		limit := proxy.Rule{Name: "limit"}
		if err := limit.Limit.UnmarshalText([]byte(r.Limit)); err != nil {
			return c, fmt.Errorf("--limit: %w", err)
		}
		c.Rules = []proxy.Rule{limit}
	}
	if r.Redis != "" {
		c.Redis = r.Redis
	}
	if r.Admin != "" {
		c.Admin = r.Admin
	}
	if len(c.Listen) == 0 {
		c.Listen = []proxy.Listener{{Address: "127.0.0.1:8080"}}
	}
	if len(c.Upstreams) == 0 && r.Config == "" {
		return c, errors.New("--upstream or --config is needed: where do requests go?")
	}
	return c, nil
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
	listeners, err := listen(c, log)
	if err != nil {
		return err
	}
	s, admin := p.Server(c.Limits), p.AdminServer()
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
		work.Go(func() error { return ended(serve(l)) })
	}
	(&reloader{command: r, p: p, began: c, log: log}).on(ctx, work)
	work.Go(func() error {
		<-ctx.Done()
		log.Info("stopping", slog.Duration("grace", r.Grace))
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Grace)
		defer cancel()
		if err := s.Shutdown(grace); err != nil {
			log.Warn("the grace is over: requests and websockets were cut off", slog.Any("error", err))
		}
		return admin.Close() // so long, /healthz tells of the end
	})
	return work.Wait()
}

// ended makes the end that was wanted no error.
func ended(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// listen opens all addresses or none, that of /healthz and /metrics as the last.
func listen(c proxy.Config, log *slog.Logger) (out []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range out {
				_ = l.Close()
			}
		}
	}()
	for _, l := range c.Listen {
		opened, err := l.Open(log)
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
