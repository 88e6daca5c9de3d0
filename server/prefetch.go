package server

import "fmt"

// RouteOption is an option of a route: [Prefetch].
type RouteOption struct{ prefetch []any }

// Prefetch has the requests of a route begin to resolve these properties before the handler
// runs, all at once: a handler that reads them one after another then waits for the longest
// instead of for all. A property is a [reqctx.Key] or the name of one, and "session" is the
// session's load.
//
//	srv.HandleFunc("GET /account", account, server.Prefetch("session", User))
//
// A prefetched property counts as read: if it is resolved when the header goes out, it commits and
// adds its Vary fields. The handler reads it like any other property and gets its error. A
// resolution that is still running when the handler returns is cancelled; in another [http.Server]
// the response then waits until it has returned. So prefetch the properties that nearly every request
// of the route reads, and none that charges, writes, or reads the request's body.
//
// The registration of the route panics if the server has no such property ([reqctx.ErrNoProperty]),
// so provide it first. It also panics if the property does no I/O, such as params or ratelimit
// ([reqctx.ErrNoPrefetch]). Requests that don't reach the handler, such as those that a middleware
// answers, prefetch nothing.
func Prefetch(properties ...any) RouteOption { return RouteOption{properties} }

// prefetchNames returns the names of the properties that the route of pattern prefetches.
func (s *Server) prefetchNames(pattern string, options []RouteOption) (names []string) {
	for _, o := range options {
		for _, p := range o.prefetch {
			switch p := p.(type) {
			case string:
				names = append(names, p)
			case interface{ Name() string }:
				names = append(names, p.Name())
			default:
				panic(fmt.Errorf("server: route %q: Prefetch of a %T; want a name or a reqctx.Key", pattern, p))
			}
		}
	}
	if err := s.reg.CheckPrefetch(names...); err != nil {
		panic(fmt.Errorf("server: route %q: Prefetch: %w", pattern, err))
	}
	return names
}

// prefetch begins to resolve the properties that a route prefetches.
func (x *exchange) prefetch(names []string) {
	if len(names) > 0 {
		_ = x.host.Prefetch(names...) // the names were checked with the route
	}
}
