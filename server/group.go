package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/internal/option"
)

// Group registers routes below a prefix, with options and middleware that all of them have.
//
//	api := srv.Group("/api/", server.Require(User))
//	api.HandleFunc("GET /notes", listNotes) // GET /api/notes
//
// A Group protects its routes and not its path: other routes may match paths below the prefix.
// [Server.Routes] shows the requirements that they lack.
type Group struct {
	srv    *Server
	prefix string // "" for the group of all routes
	option RouteOption
	use    []func(http.Handler) http.Handler
	used   bool // it has a route or a group
}

// Group returns a group of routes. The prefix ends in a slash, and may begin with a host and contain
// wildcards: "/api/", "example.com/{tenant}/". Group panics if the prefix is malformed or an option is
// wrong.
func (s *Server) Group(prefix string, options ...RouteOption) *Group {
	return s.root.Group(prefix, options...)
}

// Group returns a group within g. Its routes have the prefix, the options and the middleware of g
// first. The prefix begins and ends with a slash.
func (g *Group) Group(prefix string, options ...RouteOption) *Group {
	if strings.ContainsAny(prefix, " \t") || !strings.HasSuffix(prefix, "/") {
		panic(fmt.Sprintf("server: group %q: the prefix must end in a slash and have no method", prefix))
	}
	g.used = true
	inner := &Group{srv: g.srv, prefix: g.join(prefix), option: g.option.with(options), use: slices.Clone(g.use)}
	g.srv.check(fmt.Sprintf("group %q", inner.prefix), inner.option)
	g.srv.routesMu.Lock()
	g.srv.groups = append(g.srv.groups, inner)
	g.srv.routesMu.Unlock()
	return inner
}

// Use puts standard middleware around the routes of g: within that of [Server.Use], and around the
// requirements. The first is the outermost. It is not around 404, 405, redirects and OPTIONS, so CORS
// and access logs belong to [Server.Use]. Each route calls the functions once, and so has its own
// middleware. Use panics if g has a route or a group already, or if a middleware is nil.
func (g *Group) Use(middleware ...func(http.Handler) http.Handler) {
	if g.used {
		panic(fmt.Sprintf("server: group %q: Use after a route or a group", g.prefix))
	}
	refuseNil("Use", middleware)
	g.srv.opaque.Store(true)
	g.use = append(g.use, middleware...)
}

// HandleFunc is [Server.HandleFunc] below the prefix of g: "GET /notes" in "/api/" is the route
// "GET /api/notes", and "GET /{$}" is "GET /api/{$}". Only the prefix may have a host.
func (g *Group) HandleFunc(pattern string, h HandlerFunc, options ...RouteOption) {
	pattern = g.join(pattern)
	if h == nil {
		panic(fmt.Sprintf("server: route %q: the handler is nil", pattern))
	}
	g.add(pattern, nil, options, func(w http.ResponseWriter, r *http.Request) {
		g := w.(*gate)
		g.x.respond(g, r, h(g, g.x.request(r)))
	})
}

// Handle is [Server.Handle] below the prefix of g.
func (g *Group) Handle(pattern string, h http.Handler, options ...RouteOption) {
	pattern = g.join(pattern)
	if option.IsNil(h) {
		panic(fmt.Sprintf("server: route %q: the handler is nil", pattern))
	}
	g.add(pattern, h, options, func(w http.ResponseWriter, r *http.Request) {
		w.(*gate).x.host.SetRequest(r)
		h.ServeHTTP(w, r)
	})
	if _, ok := h.(*http.ServeMux); !ok && isSubtree(pattern) {
		g.srv.opaque.Store(true)
	}
}

// add registers a route. mounted is the handler given to Handle, or nil. h gets a gate.
func (g *Group) add(pattern string, mounted http.Handler, options []RouteOption, h http.HandlerFunc) {
	s, o := g.srv, g.option.with(options)
	s.check(fmt.Sprintf("route %q", pattern), o)
	answer := g.around(pattern, o.before(h))
	s.handle(pattern, mounted, func(w http.ResponseWriter, r *http.Request) {
		g := w.(*gate)
		g.routed = true
		g.x.seen.setRoute(&pattern)
		answer.ServeHTTP(w, r)
	})
	g.used = true
	s.routesMu.Lock()
	s.routes = append(s.routes, Route{Pattern: pattern, Requires: slices.Concat(o.require...), Prefetch: o.prefetch})
	s.routesMu.Unlock()
}

// around returns the middleware of g around h, which gets a gate.
func (g *Group) around(pattern string, h http.Handler) http.Handler {
	if len(g.use) == 0 {
		return h
	}
	around := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.srv.serve(w, r, h, false) }))
	for i, m := range slices.Backward(g.use) {
		if around = m(around); around == nil {
			panic(fmt.Sprintf("server: route %q: middleware %d of the group returned a nil handler", pattern, i))
		}
	}
	return around
}

// join returns the pattern of a route, or the prefix of a group, within g.
func (g *Group) join(pattern string) string {
	if g.prefix == "" {
		return pattern
	}
	method, path := cutMethod(pattern)
	if !strings.HasPrefix(path, "/") {
		panic(fmt.Sprintf("server: group %q: the path of %q must begin with a slash", g.prefix, pattern))
	}
	return method + strings.TrimSuffix(g.prefix, "/") + path
}
