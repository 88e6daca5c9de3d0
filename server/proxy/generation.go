package proxy

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

// generation is a configuration at work. It doesn't change; a reload makes the next one.
type generation struct {
	p         *Proxy
	clients   clients
	upstreams map[string]*upstream
	routes    []route
	rules     []*rule
	byName    map[string]*rule
	status    statusAPI
	seed      bool // the seed's fields are sent
	forwarded bool
	stall     time.Duration
	handler   http.Handler // of all but the status path
	srv       *server.Server

	mu      sync.Mutex
	users   int
	retired bool // no more users come
}

type route struct {
	match *matcher
	to    *upstream
}

// newGeneration checks a configuration and makes it ready. An error names all fields that
// are wrong.
func newGeneration(p *Proxy, c Config) (*generation, error) {
	f := &faults{source: c.source}
	g := &generation{
		p: p, upstreams: map[string]*upstream{}, byName: map[string]*rule{},
		seed: c.Headers.Seed == nil || *c.Headers.Seed, forwarded: c.Headers.Forwarded,
		stall: cmp.Or(c.Limits.Stall, time.Minute),
	}
	g.clients = newClients(&c, f)
	g.status = newStatusAPI(c.Status, f)
	g.route(&c, f)
	for i, r := range c.Rules {
		field := fmt.Sprintf("rules[%d]", i)
		made := newRule(r, field, &g.clients, f)
		if g.byName[r.Name] != nil {
			f.addf(field+".name", "is also that of another rule, %q", r.Name)
		}
		g.rules = append(g.rules, made)
		g.byName[r.Name] = made
	}
	c.Limits.check(f)
	if err := f.err(); err != nil {
		return nil, err
	}
	if err := g.serve(&c, f); err != nil {
		return nil, err
	}
	return g, nil
}

func (l Limits) check(f *faults) {
	if l.Header < 0 || l.Stall < 0 || l.Idle < 0 || l.HeaderBytes < 0 {
		f.addf("limits", "has a negative number")
	}
}

// route makes upstreams and routes.
func (g *generation) route(c *Config, f *faults) {
	for name, u := range c.Upstreams {
		if up := newUpstream(name, u, f); up != nil {
			g.upstreams[name] = up
		}
	}
	if len(c.Upstreams) == 0 {
		f.addf("upstreams", "there is none: where do requests go?")
	}
	routes := c.Routes
	if len(routes) == 0 {
		if len(c.Upstreams) > 1 {
			f.addf("routes", "there are none, and more than one upstream")
		}
		for name := range c.Upstreams {
			routes = []Route{{Upstream: name}}
		}
	}
	for i, r := range routes {
		field := fmt.Sprintf("routes[%d]", i)
		if _, ok := c.Upstreams[r.Upstream]; !ok {
			f.addf(field+".upstream", "there is no upstream %q", r.Upstream)
		}
		g.routes = append(g.routes, route{newMatcher(r.Match, field+".match", f), g.upstreams[r.Upstream]})
	}
}

// serve makes the server whose requests have the limits as properties.
func (g *generation) serve(c *Config, f *faults) error {
	var policies []ratelimit.Policy
	for _, r := range g.rules {
		policies = append(policies, r.policy)
	}
	store, err := g.p.stores.store(c, g)
	if err != nil {
		f.add("redis", err)
		return f.err()
	}
	g.srv, err = server.New(server.Options{
		RateLimits: policies, RateLimitStore: store,
		InsecureAllowCrossOrigin: true, // that is the upstream's to decide
		Logger:                   g.p.log,
	})
	if err != nil { // a rule's name, mostly
		f.add("rules", fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "server: Options.RateLimits: ratelimit: ")))
		return f.err()
	}
	g.handler = g.srv.WrapFunc(func(w http.ResponseWriter, req *server.Request) error {
		x := exchange{p: g.p, g: g, w: w, req: req}
		return x.serve()
	})
	return nil
}

// ruleOf returns the rule that an op in the store is of: the policy's name begins its key.
func (g *generation) ruleOf(op ratelimit.Op) *rule {
	if i := strings.IndexAny(op.Key, ":~"); i >= 0 {
		return g.byName[op.Key[:i]]
	}
	return nil
}

// enter says that a request uses the generation; it can't if that is retired.
func (g *generation) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.retired {
		return false
	}
	g.users++
	return true
}

func (g *generation) leave() {
	g.mu.Lock()
	g.users--
	last := g.retired && g.users == 0
	g.mu.Unlock()
	if last {
		g.close()
	}
}

// retire says that no more requests come.
func (g *generation) retire() {
	g.mu.Lock()
	g.retired = true
	idle := g.users == 0
	g.mu.Unlock()
	if idle {
		g.close()
	}
}

// close is called when the last request is over.
func (g *generation) close() {
	for _, u := range g.upstreams {
		u.transport.CloseIdleConnections()
	}
	if err := g.srv.Shutdown(context.Background()); err != nil { // waits for clean-ups only
		g.p.log.Error("closing what a configuration has used", slog.Any("error", err))
	}
}
