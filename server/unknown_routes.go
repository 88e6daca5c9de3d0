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
	mounted http.Handler // the handler that was given to Handle, or nil
}

// checkBudgets returns an error if Options.Params.Routes has patterns that no route has: their budgets
// would have no effect. It cannot know the patterns of a router that is not an [http.ServeMux]. If such
// a router may change the path, as [http.StripPrefix] does, its handlers may have any pattern.
func (s *Server) checkBudgets() error {
	if s.wrapped.Load() && s.opaque.Load() {
		return nil
	}
	patterns := slices.DeleteFunc(slices.Sorted(maps.Keys(s.opts.Params.Routes)), func(pattern string) bool {
		return slices.ContainsFunc(examplesOf(pattern), func(r *http.Request) bool { return s.mayRoute(pattern, r) })
	})
	if len(patterns) > 0 {
		return option.Errorf("server", "Options.Params.Routes", "has patterns that no route of the server has: %q", patterns)
	}
	return nil
}

// mayRoute reports whether the server, or a router mounted in it, may give r to a handler with the
// pattern.
func (s *Server) mayRoute(pattern string, r *http.Request) bool {
	h, found := s.mux.Handler(r)
	own, _ := h.(routeHandler) // the mux may redirect r
	for h = own.mounted; found != pattern; {
		mux, ok := h.(*http.ServeMux)
		if !ok {
			return h != nil && isSubtree(found)
		}
		h, found = mux.Handler(r)
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
