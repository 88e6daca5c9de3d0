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

	"github.com/lazyreq/lazyreq/server/proxy"
)

// reloader reads the configuration again.
type reloader struct {
	command *runCommand
	p       *proxy.Proxy
	began   proxy.Config // what the program has started with
	log     *slog.Logger
	redis   string // the URL that was tried last
}

// on reloads on SIGHUP and when the file changes, until ctx ends.
func (r *reloader) on(ctx context.Context, work *errgroup.Group) {
	hangup, changed := make(chan os.Signal, 1), make(chan struct{}, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	r.warn(ctx, work, r.began)
	work.Go(func() error {
		defer signal.Stop(hangup)
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-hangup:
				r.reload(ctx, work, "SIGHUP")
			case <-changed:
				r.reload(ctx, work, "the file has changed")
			}
		}
	})
	if r.command.Config == "" || r.command.Config == fromStdin {
		return
	}
	work.Go(func() error {
		ask := func() {
			select {
			case changed <- struct{}{}:
			default: // one is about to begin
			}
		}
		if err := proxy.Watch(ctx, r.command.Config, ask); err != nil {
			r.log.Error("changes of the configuration go unnoticed, only SIGHUP is left", slog.Any("error", err))
		}
		return nil
	})
}

// warn tells what may not be meant, and doesn't wait to find out.
func (r *reloader) warn(ctx context.Context, work *errgroup.Group, c proxy.Config) {
	if len(c.Rules) == 0 {
		r.log.Warn("there is no rule: nothing is limited")
	}
	tried := r.redis
	r.redis = c.Redis
	if c.Redis == "" || c.Redis == tried {
		return
	}
	work.Go(func() error {
		if err := ping(ctx, c.Redis); err != nil && ctx.Err() == nil {
			r.log.Warn("Redis doesn't answer: on_error says what becomes of requests", slog.Any("error", err))
		}
		return nil
	})
}

// ping returns why a Redis doesn't answer, in the words of the first attempt.
func ping(ctx context.Context, url string) error {
	o, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	o.MaxRetries, o.DialerRetries = -1, 1
	client := redis.NewClient(o)
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return client.Ping(ctx).Err()
}

// reload makes the configuration anew, of the flags and the file.
func (r *reloader) reload(ctx context.Context, work *errgroup.Group, why string) {
	var c proxy.Config
	err := r.p.ReloadFrom(func() (_ proxy.Config, err error) {
		c, err = r.command.config()
		return c, err
	})
	if err != nil {
		r.log.Error("configuration not reloaded: the old one stays", slog.String("why", why), slog.Any("error", err))
		return
	}
	r.log.Info("configuration reloaded", slog.String("why", why))
	r.warn(ctx, work, c)
	if fields := fixed(r.began, c); len(fields) > 0 {
		r.log.Warn("these changes need a restart", slog.String("fields", strings.Join(fields, ", ")))
	}
}

// fixed returns the fields in which configurations differ and that only a restart changes.
func fixed(a, b proxy.Config) (fields []string) {
	if !reflect.DeepEqual(a.Listen, b.Listen) {
		fields = append(fields, "listen")
	}
	if a.Admin != b.Admin {
		fields = append(fields, "admin")
	}
	if a.Limits.Header != b.Limits.Header {
		fields = append(fields, "limits.header")
	}
	if a.Limits.Idle != b.Limits.Idle {
		fields = append(fields, "limits.idle")
	}
	if a.Limits.HeaderBytes != b.Limits.HeaderBytes {
		fields = append(fields, "limits.header_bytes")
	}
	return fields
}
