package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
)

func TestFlagsOverrideFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
listen: ['127.0.0.1:1', '127.0.0.1:2']
admin: 127.0.0.1:3
redis: redis://file
upstreams: {a: {url: http://a}, b: {url: http://b}}
routes: [{upstream: b}]
rules: [{name: one, limit: 1/s}, {name: two, limit: 2/s}]
`), 0o600))
	c, err := (&runCommand{Config: file}).config()
	require.NoError(t, err)
	require.Len(t, c.Listen, 2)
	require.Equal(t, "127.0.0.1:3", c.Admin)
	require.Equal(t, "redis://file", c.Redis)
	require.Len(t, c.Upstreams, 2)
	require.Len(t, c.Routes, 1)
	require.Len(t, c.Rules, 2)

	c, err = (&runCommand{
		Config: file, Listen: []string{"127.0.0.1:4"}, Admin: "127.0.0.1:5", Redis: "redis://flag", Upstream: "http://c", Limit: "3/s",
	}).config()
	require.NoError(t, err)
	require.Equal(t, []config.Listener{{Address: "127.0.0.1:4"}}, c.Listen)
	require.Equal(t, "127.0.0.1:5", c.Admin)
	require.Equal(t, "redis://flag", c.Redis)
	require.Len(t, c.Upstreams, 1)
	require.Equal(t, "http://c", c.Upstreams["upstream"].URL)
	require.Equal(t, []config.Route{{Upstream: "upstream", Match: c.Routes[0].Match}}, c.Routes, "those of the file have no upstreams")
	require.Len(t, c.Rules, 1)
	require.Equal(t, "limit", c.Rules[0].Name)

	c, err = (&runCommand{Upstream: "http://c"}).config()
	require.NoError(t, err)
	require.Equal(t, []config.Listener{{Address: "127.0.0.1:8080"}}, c.Listen, "only for this machine")

	_, err = (&runCommand{Config: file, Listen: []string{"127.0.0.1:4", "x"}}).config()
	require.ErrorContains(t, err, `--listen: listen[1].address: "x"`, "not the position in the file")

	require.NoError(t, os.WriteFile(file, []byte("redis_timeout: 25h\nupstreams: {a: {url: http://a}}\n"), 0o600))
	_, err = (&runCommand{Config: file, Redis: "redis://flag"}).config()
	require.ErrorContains(t, err, "proxy.yaml:1:16: redis_timeout: ", "--redis sets another field")
}

func TestWatchedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	f := watchedFile{name: file}
	write("one")
	require.False(t, f.changed())
	require.False(t, f.changed())
	write("tw")
	require.False(t, f.changed(), "it may not be complete")
	write("two")
	require.False(t, f.changed())
	require.True(t, f.changed())
	require.False(t, f.changed())
	require.NoError(t, os.Remove(file))
	require.False(t, f.changed())
	write("two")
	require.False(t, f.changed())
	write("three")
	require.False(t, f.changed())
	write("two")
	require.False(t, f.changed())
	require.False(t, f.changed())
}
