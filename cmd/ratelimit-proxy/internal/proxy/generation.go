package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/lazyreq/lazyreq/cmd/ratelimit-proxy/internal/config"
	"github.com/lazyreq/lazyreq/ratelimit"
	"github.com/lazyreq/lazyreq/server"
)

// generation serves requests with one configuration. Each reload creates a new generation.
type generation struct {
	p           *Proxy
	config      config.Config // with its defaults
	clients     clients
	upstreams   map[string]*upstream
	rules       []*rule
	byName      map[string]*rule
	statusAllow []netip.Prefix

	pathMatches []*config.Match // the matches of rules, tiers and routes, if they have paths
	pathCounts  bool            // the key of a rule contains the path
	pathDecides bool            // such a rule also has lists or tiers, so some paths have other limits

	handler http.Handler // for all requests except those to the status path
	srv     *server.Server
	store   *store

	inUse sync.RWMutex // each request holds a read lock; retire locks it forever
}

// newGeneration checks a configuration and returns a generation for it. before is the current generation, or nil at
// the start.
func newGeneration(p *Proxy, c config.Config, before *generation) (*generation, error) {
	resolved, err := c.Resolve()
	if err = errors.Join(err, c.CheckFiles()); err != nil {
		return nil, err
	}
	c = resolved
	g := &generation{p: p, config: c, upstreams: map[string]*upstream{}, byName: map[string]*rule{}}
	if g.clients, err = newClients(&c); err != nil {
		return nil, err
	}
	for _, prefix := range c.Status.Allow {
		g.statusAllow = append(g.statusAllow, unmapPrefix(prefix))
	}
	for name, u := range c.Upstreams {
		if before != nil && before.upstreams[name].matchesConfig(u) {
			g.upstreams[name] = before.upstreams[name]
		} else if g.upstreams[name], err = newUpstream(p, name, u); err != nil {
			return nil, err
		}
	}
	for _, r := range c.Rules {
		made := newRule(r, &g.clients, p.metrics.ruleCountersFor(r.Name), p.policyFor(r.Name))
		g.rules = append(g.rules, made)
		g.byName[r.Name] = made
	}
	g.collectPaths()
	var shared *store
	if before != nil {
		shared = before.store
	}
	if g.store, err = p.openStore(&c, shared); err != nil {
		return nil, err
	}
	if err := g.newServer(); err != nil {
		return nil, errors.Join(err, g.store.release())
	}
	return g, nil
}

// collectPaths sets the fields that readsDifferently uses.
func (g *generation) collectPaths() {
	for i := range g.config.Routes {
		g.pathMatches = append(g.pathMatches, &g.config.Routes[i].Match)
	}
	for _, r := range g.rules {
		g.pathMatches = append(g.pathMatches, &r.Match)
		for i := range r.tiers {
			g.pathMatches = append(g.pathMatches, &r.tiers[i].match)
		}
		lists := r.allow != nil || r.deny != nil && len(r.deny.values) > 0 || len(r.tiers) > 0
		g.pathCounts = g.pathCounts || r.key.Has("path")
		g.pathDecides = g.pathDecides || r.key.Has("path") && lists
	}
	g.pathMatches = slices.DeleteFunc(g.pathMatches, func(m *config.Match) bool { return len(m.Paths) == 0 })
}

// newServer creates the [server.Server] of this generation. The limits are properties of its requests.
func (g *generation) newServer() error {
	var policies []*ratelimit.Policy
	for _, r := range g.rules {
		policies = append(policies, r.policy)
	}
	store, err := g.limitStore()
	if err != nil {
		return err
	}
	g.srv, err = server.New(server.Options{
		RateLimits: policies, RateLimitStore: store,
		InsecureAllowCrossOrigin: true, // the upstream decides about cross-origin requests
		Logger:                   g.p.log,
	})
	if err != nil {
		return err
	}
	g.handler = g.srv.WrapFunc(func(w http.ResponseWriter, req *server.Request) error {
		f := forwarding{p: g.p, g: g, w: w, req: req}
		return f.answerError(f.serve())
	})
	return nil
}

// ruleOfOp returns the rule to which an op belongs. The key of an op begins with the rule's name.
func (g *generation) ruleOfOp(op ratelimit.Op) *rule {
	return g.byName[op.Key[:strings.IndexAny(op.Key, ":~")]]
}

// acquire reports whether a request may use the generation, which is false after retire. If it returns true, the
// request must call release.
func (g *generation) acquire() bool { return g.inUse.TryRLock() }

func (g *generation) release() { g.inUse.RUnlock() }

// retire makes acquire return false, and closes the generation when the last request has called release. It must be
// called only once.
func (g *generation) retire() {
	if g.inUse.TryLock() {
		g.close()
		return
	}
	go func() {
		g.inUse.Lock()
		g.close()
	}()
}

// close closes the connections that the current generation doesn't use.
func (g *generation) close() {
	current := g.p.current.Load()
	for name, u := range g.upstreams {
		if g.p.closed.Load() || current.upstreams[name] != u {
			u.transport.CloseIdleConnections()
		}
	}
	err := g.srv.Shutdown(context.Background()) // all requests have ended, so it waits only for their clean-up
	if err = errors.Join(err, g.store.release()); err != nil {
		g.p.log.Error("closing the previous configuration", slog.Any("error", err))
	}
}
