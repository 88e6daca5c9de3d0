package server

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Route describes a route of a [Server].
type Route struct {
	Pattern string // with the prefix of its group
	// Requires are the requirements in the order in which they are waited for. Those of a [Requiring] around
	// the handler are not among them.
	Requires []Requirement
	Prefetch []Property
	// Lacks are requirements of groups that the route does not have, although it may match paths below
	// their prefix. A pattern for all paths, such as "/" or "/{rest...}", lacks only those of a group "/".
	Lacks []Requirement
}

// Routes returns the routes in the order of their registration. Those of other routers are not among
// them. A test can check that no route lacks a requirement, except those that it names:
//
//	public := []string{"POST /api/login"}
//	for r := range srv.Routes() {
//		require.True(t, len(r.Lacks) == 0 || slices.Contains(public, r.Pattern), r.Pattern)
//	}
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

// lack adds the items that r does not require to what it lacks. Items of an application's type may not
// be comparable, so their types and texts are compared.
func (r *Route) lack(items []Requirement) {
	text := func(item Requirement) string { return fmt.Sprintf("%T %v", item, item) }
	for _, item := range items {
		same := func(other Requirement) bool { return text(other) == text(item) }
		if !slices.ContainsFunc(r.Requires, same) && !slices.ContainsFunc(r.Lacks, same) {
			r.Lacks = append(r.Lacks, item)
		}
	}
}

// isBelow reports whether a pattern may match paths that begin with the prefix of a group. A pattern for
// all paths, such as that of a front page, counts only for the prefix "/".
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
