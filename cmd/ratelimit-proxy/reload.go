package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/proxy"
)

// reloader reloads the configuration.
type reloader struct {
	command *runCommand
	p       *proxy.Proxy
	started config.Config // the configuration at the start
	log     *slog.Logger
	redis   string // the URL that was tried last
}

// watch reloads on SIGHUP and when the file changes, until ctx ends.
func (r *reloader) watch(ctx context.Context, work *errgroup.Group) {
	hangup, changed := make(chan os.Signal, 1), make(chan struct{}, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	r.warnMistakes(ctx, work, r.started)
	work.Go(func() error {
		defer signal.Stop(hangup)
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-hangup:
				r.reload(ctx, work, "SIGHUP")
			case <-changed:
				r.reload(ctx, work, "file changed")
			}
		}
	})
	if r.command.Config == "" || r.command.Config == fromStdin {
		return
	}
	work.Go(func() error {
		notify := func() {
			select {
			case changed <- struct{}{}:
			default: // a reload is about to begin
			}
		}
		if err := watchFile(ctx, r.command.Config, notify); err != nil {
			r.log.Error("the configuration file can't be watched: only SIGHUP reloads it", slog.Any("error", err))
		}
		return nil
	})
}

// warnMistakes logs what may be a mistake. It doesn't wait for Redis.
func (r *reloader) warnMistakes(ctx context.Context, work *errgroup.Group, c config.Config) {
	if len(c.Rules) == 0 {
		r.log.Warn("there is no rule: nothing is limited")
	}
	tried := r.redis
	r.redis = c.Redis
	if c.Redis == "" || c.Redis == tried {
		return
	}
	work.Go(func() error {
		if addr, err := ping(ctx, c.Redis); err != nil && ctx.Err() == nil {
			r.log.Warn("Redis fails: the rules' on_error applies", slog.String("redis", addr), slog.Any("error", err))
		}
		return nil
	})
}

// ping returns the address of a Redis and the error of the first attempt to reach it.
func ping(ctx context.Context, url string) (addr string, err error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return "", err
	}
	o.MaxRetries, o.DialerRetries = -1, 1
	client := redis.NewClient(o)
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return o.Addr, client.Ping(ctx).Err()
}

// reload reloads the configuration, the file's and the flags'.
func (r *reloader) reload(ctx context.Context, work *errgroup.Group, cause string) {
	var c config.Config
	err := r.p.Reload(func() (_ config.Config, err error) {
		c, err = r.command.config()
		return c, err
	})
	if err != nil {
		r.log.Error("configuration not reloaded: the old one stays in force", slog.String("cause", cause), slog.Any("error", err))
		return
	}
	r.log.Info("configuration reloaded", slog.String("cause", cause))
	r.warnMistakes(ctx, work, c)
	if fields := needRestart(r.started, c); len(fields) > 0 {
		r.log.Warn("some changes need a restart", slog.String("fields", strings.Join(fields, ", ")))
	}
}

// needRestart returns the fields that differ and that only a restart changes.
func needRestart(a, b config.Config) (fields []string) {
	if !reflect.DeepEqual(a.Listen, b.Listen) {
		fields = append(fields, "listen")
	}
	if a.Admin != b.Admin {
		fields = append(fields, "admin")
	}
	if a.Timeouts.Header != b.Timeouts.Header {
		fields = append(fields, "timeouts.header")
	}
	if a.Timeouts.Idle != b.Timeouts.Idle {
		fields = append(fields, "timeouts.idle")
	}
	if a.MaxHeaderBytes != b.MaxHeaderBytes {
		fields = append(fields, "max_header_bytes")
	}
	return fields
}
