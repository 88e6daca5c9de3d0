package server

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/lazyreq/lazyreq/internal/option"
)

// routeHandler is the handler of a route in the server's mux.
type routeHandler struct {
	http.HandlerFunc
	given any // the handler that the application has given: an http.Handler or a HandlerFunc
}

// checkBudgets returns an error if Options.Params.Routes has patterns that no route has: their budgets
// would have no effect. A middleware or the handler of a subtree may be a router with such patterns. If
// the server has one, checkBudgets logs a warning and returns nil.
func (s *Server) checkBudgets() error {
	patterns := slices.DeleteFunc(slices.Sorted(maps.Keys(s.opts.Params.Routes)), func(pattern string) bool {
		return slices.ContainsFunc(examplesOf(pattern), func(r *http.Request) bool { return s.mayRoute(pattern, r) })
	})
	if len(patterns) == 0 {
		return nil
	}
	err := option.Errorf("server", "Options.Params.Routes", "has patterns that no route of the server has: %q", patterns)
	if s.opaque.Load() {
		s.log.Warn(err.Error() + ". A middleware or a handler may have them.")
		return nil
	}
	return err
}

// mayRoute reports whether the server, or a router mounted in it, may give r to a handler with the
// pattern.
func (s *Server) mayRoute(pattern string, r *http.Request) bool {
	h, found := s.mux.Handler(r)
	route, _ := h.(routeHandler) // the mux may redirect r
	for given := route.given; found != pattern; {
		mux, ok := given.(*http.ServeMux)
		if !ok {
			_, ok = given.(http.Handler)
			return ok && isSubtree(found)
		}
		given, found = mux.Handler(r)
	}
	return true
}

// isSubtree reports whether a pattern matches paths of any length.
func isSubtree(pattern string) bool {
	return strings.HasSuffix(pattern, "/") || strings.HasSuffix(pattern, "...}")
}

// cutMethod cuts a pattern before its host or path. The method ends with the space between them.
func cutMethod(pattern string) (method, rest string) {
	rest = strings.TrimLeft(pattern[strings.IndexAny(pattern, " \t")+1:], " \t")
	return strings.TrimSuffix(pattern, rest), rest
}

// examplesOf returns requests that pattern matches. Those of a subtree have paths of several lengths,
// as other patterns may match some of them.
func examplesOf(pattern string) (examples []*http.Request) {
	method, rest := cutMethod(pattern)
	host, path, _ := strings.Cut(rest, "/")
	path = "/" + strings.TrimSuffix(path, "{$}")
	paths := []string{path}
	if isSubtree(pattern) {
		for n := range 8 {
			paths = append(paths, path[:strings.LastIndexByte(path, '/')]+strings.Repeat("/-", n+1))
		}
	}
	for _, path := range paths {
		if u, err := url.ParseRequestURI(path); err == nil {
			examples = append(examples, &http.Request{Method: strings.TrimSpace(method), Host: host, URL: u})
		}
	}
	return examples
}
