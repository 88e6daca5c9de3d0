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
// Only a property that is marked with Prop.Prefetch can be prefetched, as the session is: a
// rate limit, which charges, cannot. The property must have been provided already. Otherwise
// the registration of the route panics, with an error that is [reqctx.ErrNoPrefetch] or
// [reqctx.ErrNoProperty].
//
// The handler reads a prefetched property like any other. What it does not read has no effect
// on the response, is cancelled when the handler returns, and holds up no response;
// [reqctx.Context.Prefetch] documents the rest. Requests that don't reach the handler, such as
// those that a middleware answers, prefetch nothing.
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
	for i, name := range names {
		if name == "session" { // the handle, which loads it by another property
			names[i] = "session.load"
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
		x.prefetched.Store(true)
		_ = x.ctx.Prefetch(names...) // the names were checked with the route
	}
}
