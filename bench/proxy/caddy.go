package proxy

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/lazyreq/lazyreq/internal/testhost"
)

// startCaddy starts Caddy, built from the module in bench/caddy. It keeps connections to the
// upstream like the others, and logs only errors: by default, caddy-ratelimit logs each denial.
func startCaddy(ctx context.Context, b *bench, s setup) (*running, error) {
	if b.caddy.err != nil {
		return nil, b.caddy.err
	}
	dir, err := os.MkdirTemp(b.dir, "caddy-")
	if err != nil {
		return nil, err
	}
	port, err := testhost.ReservePort()
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(caddyConfig(port.Addr(), b.behind, s.limit))
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "caddy.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, err
	}
	cmd := command(b.caddy.path, "run", "--config", file)
	cmd.Env = append(cmd.Env, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	p, err := launch(ctx, b.proxy, port.Addr(), cmd)
	if err != nil {
		return nil, err
	}
	end := func() error { defer port.Release(); return stopFunc(p)() }
	return &running{addr: port.Addr(), pids: []int{p.Pid()}, close: end}, nil
}

func caddyConfig(addr, behind string, l limit) any {
	type object = map[string]any
	var handlers []object
	if l != unlimited {
		handlers = append(handlers, object{"handler": "rate_limit", "rate_limits": object{"clients": object{
			"key": "{http.request.header.Authorization}", "window": l.per.String(), "max_events": l.n,
		}}})
	}
	handlers = append(handlers, object{
		"handler":   "reverse_proxy",
		"upstreams": []object{{"dial": behind}},
		"transport": object{"protocol": "http", "compression": false, "keep_alive": object{"max_idle_conns_per_host": 512}},
	})
	return object{
		"admin":   object{"disabled": true, "config": object{"persist": false}},
		"logging": object{"logs": object{"default": object{"level": "ERROR"}}},
		"apps": object{"http": object{"servers": object{"main": object{
			"listen":          []string{addr},
			"protocols":       []string{"h1"},
			"automatic_https": object{"disable": true},
			"routes":          []object{{"handle": handlers}},
		}}}},
	}
}
