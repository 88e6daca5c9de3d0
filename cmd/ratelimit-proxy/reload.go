package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/proxy"
)

// reloader reloads the configuration.
type reloader struct {
	command *runCommand
	p       *proxy.Proxy
	started config.Config // the configuration with which the program started
	log     *slog.Logger
}

// lookEvery is the time between two reads of the file. Unlike notifications of the operating system, reading also
// notices changes on network file systems, and of files that are replaced, mounted or linked.
const lookEvery = 500 * time.Millisecond

// watch reloads on a signal and when the file changes, until ctx ends. The program does not wait for watch when it stops,
// because reading the file may hang.
func (r *reloader) watch(ctx context.Context, hangup <-chan os.Signal) {
	file := watchedFile{name: r.command.Config}
	file.changed() // the first call only remembers the content
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			r.reload(ctx, "SIGHUP")
		case <-tick.C:
			if file.changed() {
				r.reload(ctx, "file changed")
			}
		}
	}
}

// watchedFile notices changes of a file's content.
type watchedFile struct {
	name         string
	seen, loaded []byte
}

// changed reads the file and reports whether its content is new. New content is reported only if two calls in a row
// have read it, because somebody may still be writing the file. The first call returns false, and so does a call that
// can't read the file.
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
func (r *reloader) warnMistakes(ctx context.Context, c config.Config) {
	if len(c.Rules) == 0 {
		r.log.Warn("there is no rule: nothing is limited")
	}
	go r.p.PingRedis(ctx)
}

// reload replaces the configuration with the one that the file and the flags define.
func (r *reloader) reload(ctx context.Context, cause string) {
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
	r.warnMistakes(ctx, c)
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
