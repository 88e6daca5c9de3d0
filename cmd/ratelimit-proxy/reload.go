package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"reflect"
	"strings"
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

// lookEvery is the time between two looks at the file. Unlike notifications of the operating system, looking also works
// for network file systems and for files that are replaced, mounted or linked.
const lookEvery = 500 * time.Millisecond

// watch reloads on a signal and when the file changes, until ctx ends.
func (r *reloader) watch(ctx context.Context, work *errgroup.Group, hangup <-chan os.Signal) {
	r.warnMistakes(ctx, work, r.started)
	changes := make(chan struct{})
	if r.command.Config != fromStdin {
		go look(ctx, r.command.Config, changes) // the end doesn't wait for it: a file system may hang
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			r.reload(ctx, work, "SIGHUP")
		case <-changes:
			r.reload(ctx, work, "file changed")
		}
	}
}

// look sends a value after each change of a file, until ctx ends.
func look(ctx context.Context, name string, changes chan<- struct{}) {
	file := watchedFile{name: name}
	file.changed() // not yet
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if file.changed() {
			select {
			case changes <- struct{}{}:
			case <-ctx.Done():
			}
		}
	}
}

// watchedFile notices changes of a file's content.
type watchedFile struct {
	name         string
	seen, loaded []byte
}

// changed reports whether the content is new, and has been the same in the previous call: somebody may still be writing
// the file. A file that can't be read has not changed. The first call returns false.
func (f *watchedFile) changed() bool {
	now, err := os.ReadFile(f.name)
	if err != nil {
		return false
	}
	settled := bytes.Equal(now, f.seen)
	if f.seen == nil {
		f.loaded = now
	}
	f.seen = now
	if !settled || bytes.Equal(now, f.loaded) {
		return false
	}
	f.loaded = now
	return true
}

// warnMistakes logs probable mistakes. It doesn't wait for Redis.
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

// ping tries once to reach a Redis. It returns the address and the error.
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

// reload replaces the configuration with the one that the file and the flags define.
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

// needRestart returns the changed fields that take effect only after a restart.
func needRestart(a, b config.Config) (fields []string) {
	for _, f := range []struct {
		name string
		a, b any
	}{
		{"listen", a.Listen, b.Listen},
		{"admin", a.Admin, b.Admin},
		{"timeouts.header", a.Timeouts.Header, b.Timeouts.Header},
		{"timeouts.idle", a.Timeouts.Idle, b.Timeouts.Idle},
		{"max_header_bytes", a.MaxHeaderBytes, b.MaxHeaderBytes},
	} {
		if !reflect.DeepEqual(f.a, f.b) {
			fields = append(fields, f.name)
		}
	}
	return fields
}
