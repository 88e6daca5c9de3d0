package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
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
	matchers  []*matcher // that go by paths
	byPath    bool       // a key does, by which some are allowed more
	status    statusAPI
	seed      bool // the seed's fields are sent
	forwarded bool

	underscores bool // are kept in names of request headers

	stall   time.Duration
	handler http.Handler // of all but the status path
	srv     *server.Server
	store   *store

	users atomic.Int64 // requests, and retired if no more of them come
}

const retired = 1 << 62

// maxReplicas is what a limit is divided by at most.
const maxReplicas = 1 << 20

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
		seed: c.Headers.Seed == nil || *c.Headers.Seed, forwarded: c.Headers.Forwarded, underscores: c.Headers.Underscores,
		stall: cmp.Or(c.Limits.Stall, time.Minute),
	}
	g.clients = newClients(&c, f)
	g.status = newStatusAPI(c.Status, f)
	g.route(&c, f)
	if c.Replicas < 0 || c.Replicas > maxReplicas {
		f.addf("replicas", "is %d, want 1 to %d", c.Replicas, maxReplicas)
	}
	if c.RedisTimeout < 0 || c.RedisTimeout > time.Hour {
		f.addf("redis_timeout", "is %v, want 0 to 1h", c.RedisTimeout)
	}
	for i, r := range c.Rules {
		field := fmt.Sprintf("rules[%d]", i)
		made := newRule(r, field, &g.clients, f)
		if g.byName[r.Name] != nil {
			f.addf(field+".name", "is also that of another rule, %q", r.Name)
		}
		g.rules = append(g.rules, made)
		g.byName[r.Name] = made
	}
	g.checkNames(&c, f)
	g.watch()
	taken := map[string]string{}
	for i, l := range c.Listen {
		field := fmt.Sprintf("listen[%d]", i)
		l.check(field, f)
		checkTaken(taken, field+".address", l.Address, f)
	}
	if p.current.Load() == nil { // a reload may come in the middle of a pair that is replaced
		checkFiles(c.Listen, f)
	}
	if c.Admin != "" {
		checkAddress("admin", c.Admin, f)
		checkTaken(taken, "admin", c.Admin, f)
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
	if l.HeaderBytes > 64<<20 {
		f.addf("limits.header_bytes", "is more than 64MiB")
	}
}

// route makes upstreams and routes.
func (g *generation) route(c *Config, f *faults) {
	for name, u := range c.Upstreams {
		if had := g.p.upstream(name); had != nil && had.same(u) {
			g.upstreams[name] = had
		} else if up := newUpstream(name, u, g.p, f); up != nil {
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
	for i, r := range g.rules {
		policies = append(policies, r.policy)
		r.first = i == 0
		r.counters = g.p.metrics.rule(r.Name)
	}
	var err error
	if g.store, err = g.p.stores.open(c); err != nil {
		f.add(storeField(c), plainly(err))
		return f.err()
	}
	store, err := g.layers()
	if err != nil {
		return errors.Join(err, g.p.stores.release(g.store))
	}
	g.srv, err = server.New(server.Options{
		RateLimits: policies, RateLimitStore: store,
		InsecureAllowCrossOrigin: true, // that is the upstream's to decide
		Logger:                   g.p.log,
	})
	if err != nil { // a rule's name, mostly
		f.add("rules", plainly(err))
		return errors.Join(f.err(), g.p.stores.release(g.store))
	}
	g.handler = g.srv.WrapFunc(func(w http.ResponseWriter, req *server.Request) error {
		x := exchange{p: g.p, g: g, w: w, req: req}
		return x.conclude(x.serve())
	})
	return nil
}

func storeField(c *Config) string {
	if c.Redis != "" {
		return "redis"
	}
	return "memory.max_bytes"
}

// plainly leaves out of an error where in the Go code it is from.
func plainly(err error) error {
	text := err.Error()
	for _, prefix := range []string{"server: Options.RateLimits: ", "ratelimit: ", "IPOptions.", "memstore: Options.", "redis: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return errors.New(text)
}

// ruleOf returns the rule that an op in the store is of: its name begins the key.
func (g *generation) ruleOf(op ratelimit.Op) *rule {
	return g.byName[op.Key[:strings.IndexAny(op.Key, ":~")]]
}

// enter says that a request uses the generation; it can't if that is retired.
func (g *generation) enter() bool {
	for {
		n := g.users.Load()
		if n&retired != 0 {
			return false
		}
		if g.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (g *generation) leave() {
	if g.users.Add(-1) == retired {
		g.close()
	}
}

// retire says that no more requests come. It is called once.
func (g *generation) retire() {
	if g.users.Add(retired) == retired {
		g.close()
	}
}

// close is called when the last request is over.
func (g *generation) close() {
	for name, u := range g.upstreams {
		if g.p.closed.Load() || g.p.upstream(name) != u {
			u.transport.CloseIdleConnections()
			u.outage.close()
		}
	}
	err := g.srv.Shutdown(context.Background()) // waits for clean-ups only
	if err = errors.Join(err, g.p.stores.release(g.store)); err != nil {
		g.p.log.Error("closing what a configuration has used", slog.Any("error", err))
	}
}
