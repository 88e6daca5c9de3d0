package server

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Route describes a route of a [Server].
type Route struct {
	Pattern string // with the prefix of its group
	// Requires are the requirements in the order of waiting. The items of [Requiring] are not included.
	Requires []Requirement
	Prefetch []Property
	// Lacks are requirements of groups that the route does not have although it may match paths below their prefix. A
	// pattern for all paths, such as "/" or "/{rest...}", only lacks requirements of a group "/".
	Lacks []Requirement
}

// Routes returns the routes in the order of their registration, without those of other routers. A test can check with it
// that only the routes that the test names lack a requirement.
func (s *Server) Routes() iter.Seq[Route] {
	return func(yield func(Route) bool) {
		s.routesMu.Lock()
		routes, groups := s.routes, s.groups
		s.routesMu.Unlock()
		for _, r := range routes {
			r.Requires, r.Prefetch = slices.Clone(r.Requires), slices.Clone(r.Prefetch)
			for _, g := range groups {
				if isBelow(g.prefix, r.Pattern) {
					r.lack(slices.Concat(g.option.require...))
				}
			}
			if !yield(r) {
				return
			}
		}
	}
}

// lack adds the items that r does not require to r.Lacks. It compares types and texts, because items of the
// application may not be comparable.
func (r *Route) lack(items []Requirement) {
	text := func(item Requirement) string { return fmt.Sprintf("%T %v", item, item) }
	for _, item := range items {
		same := func(other Requirement) bool { return text(other) == text(item) }
		if !slices.ContainsFunc(r.Requires, same) && !slices.ContainsFunc(r.Lacks, same) {
			r.Lacks = append(r.Lacks, item)
		}
	}
}

// isBelow reports whether pattern may match paths below the prefix of a group. A pattern for all paths, such as that
// of a front page, is only below "/".
func isBelow(prefix, pattern string) bool {
	_, pattern = cutMethod(pattern)
	groupHost, groupPath, _ := strings.Cut(prefix, "/")
	host, path, _ := strings.Cut(pattern, "/")
	if host != "" && groupHost != "" && host != groupHost {
		return false
	}
	want, have := strings.Split(groupPath, "/"), strings.Split(path, "/")
	want = want[:len(want)-1] // the prefix ends in a slash
	if isSubtree(pattern) && len(have) > 1 {
		have = have[:len(have)-1] // any segments may follow
		want = want[:min(len(want), len(have))]
	} else if len(have) <= len(want) {
		return false
	}
	for i := range want {
		if want[i] != have[i] && !strings.HasPrefix(want[i], "{") && !strings.HasPrefix(have[i], "{") {
			return false
		}
	}
	return true
}

// checkBudgets logs a warning if Options.Params.Routes has patterns that no route has, because their budgets have no
// effect unless another router has these patterns.
func (s *Server) checkBudgets() {
	unknown := maps.Clone(s.opts.Params.Routes)
	for r := range s.Routes() {
		delete(unknown, r.Pattern)
	}
	if len(unknown) > 0 {
		s.log.Warn("server: Options.Params.Routes has patterns that no route of the server has",
			"patterns", slices.Sorted(maps.Keys(unknown)))
	}
}

// isSubtree reports whether a pattern matches paths of any length.
func isSubtree(pattern string) bool {
	return strings.HasSuffix(pattern, "/") || strings.HasSuffix(pattern, "...}")
}

// cutMethod cuts a pattern before its host or path. The method includes the space after it.
func cutMethod(pattern string) (method, rest string) {
	rest = strings.TrimLeft(pattern[strings.IndexAny(pattern, " \t")+1:], " \t")
	return strings.TrimSuffix(pattern, rest), rest
}
