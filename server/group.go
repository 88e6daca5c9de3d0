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
// A Group protects its routes and not its path: other routes may match paths below the prefix, and every path is below
// the prefix "/". [Server.Routes] shows the requirements of each route.
type Group struct {
	srv    *Server
	prefix string // "" for the group of all routes
	option RouteOption
	use    []func(http.Handler) http.Handler
	used   bool // it has a route or a group
}

// Group returns a group of routes. The prefix ends in a slash. It may begin with a host and contain wildcards:
// "/api/", "example.com/{tenant}/". As in [http.ServeMux], "api/" is the host api. Group panics if the prefix has a
// space or no slash at its end, or if an option is wrong. The first route panics if the prefix is malformed in
// another way.
func (s *Server) Group(prefix string, options ...RouteOption) *Group {
	return s.root.Group(prefix, options...)
}

// Group returns a group within g. Its routes have the prefix, options and middleware of g, and then its own. The
// prefix begins and ends with a slash.
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

// Use puts standard middleware around the routes of g and their requirements, inside the middleware of [Server.Use].
// The first is the outermost. Responses 404 and 405 and redirects do not pass it, so CORS belongs to [Server.Use]. As
// there, the context that it passes on must be derived from the request's. The functions are called once for each
// route. Use panics if g already has a route or a group, or if a middleware is nil.
func (g *Group) Use(middleware ...func(http.Handler) http.Handler) {
	if g.used {
		panic(fmt.Sprintf("server: group %q: Use after a route or a group", g.prefix))
	}
	refuseNil("Use", middleware)
	g.use = append(g.use, middleware...)
}

// HandleFunc is [Server.HandleFunc] below the prefix of g. In "/api/", the pattern "GET /notes" means "GET
// /api/notes", and "GET /{$}" means "GET /api/{$}". Only the prefix may have a host.
func (g *Group) HandleFunc(pattern string, h HandlerFunc, options ...RouteOption) {
	g.add(pattern, h, options, func(w http.ResponseWriter, r *http.Request) {
		gate := w.(*gate)
		gate.x.respond(gate, r, h(gate, gate.x.request(r)))
	})
}

// Handle is [Server.Handle] below the prefix of g.
func (g *Group) Handle(pattern string, h http.Handler, options ...RouteOption) {
	g.add(pattern, h, options, func(w http.ResponseWriter, r *http.Request) {
		w.(*gate).x.host.SetRequest(r)
		h.ServeHTTP(w, r)
	})
}

// add registers a route. given is the application's handler, and h calls it with a gate.
func (g *Group) add(pattern string, given any, options []RouteOption, h http.HandlerFunc) {
	s, o := g.srv, g.option.with(options)
	pattern = g.join(pattern)
	if option.IsNil(given) {
		panic(fmt.Sprintf("server: route %q: the handler is nil", pattern))
	}
	s.check(fmt.Sprintf("route %q", pattern), o)
	answer := g.around(pattern, o.before(h))
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		gate := w.(*gate)
		gate.routed = true
		if seen := gate.x.seen; seen != nil {
			seen.route.Store(&pattern)
		}
		answer.ServeHTTP(w, r)
	})
	g.used = true
	s.routesMu.Lock()
	s.routes = append(s.routes, Route{Pattern: pattern, Requires: slices.Concat(o.require...), Prefetch: o.prefetch})
	s.routesMu.Unlock()
}

// around returns h inside the middleware of g. The writer that h gets is a gate.
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

// join returns a pattern or a prefix, preceded by the prefix of g.
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
